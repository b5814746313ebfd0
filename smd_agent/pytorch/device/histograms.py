"""Histograms of tensors that live on an accelerator: those that are saved, and those of TensorBoard's files.

They come from the elements in order: sorting waits for nobody and gives the same each time, which counting on an
accelerator does not. It takes several times the tensor's memory, so it is done in pieces (see ``room``).
"""

from __future__ import annotations

import functools

import numpy as np
import torch

from smd_agent.core.reductions.histogram import BUCKETS, FINE_BUCKETS, sizes
from smd_agent.pytorch.arrays import sent
from smd_agent.pytorch.device import free_memory

_NARROW = (torch.float16, torch.bfloat16, torch.float32, torch.uint8, torch.int8, torch.int16, torch.bool)


def histogram_of(tensor: torch.Tensor, fine: bool = False) -> torch.Tensor:
    """The histogram of a real, strided tensor as ``core.reductions.histogram`` describes it, int64, on its device."""
    flat = tensor.detach().reshape(-1)
    wide = torch.float32 if flat.dtype in _NARROW else torch.float64
    counts = torch.zeros(FINE_BUCKETS if fine else BUCKETS, dtype=torch.int64, device=flat.device)
    for piece in torch.split(flat, free_memory.elements(flat.device)):
        counts += _counts(piece.to(wide), fine)
    return counts


def finite_sums(tensor: torch.Tensor) -> torch.Tensor:
    """Smallest, largest, sum and root of the sum of squares of a tensor's finite elements; float64, on its device."""
    flat = tensor.detach().reshape(-1)
    parts = []
    for piece in torch.split(flat, free_memory.elements(flat.device)):
        # A copy: what is done in place must not be done to the program's tensor.
        wide = piece.to(torch.float64, copy=True)
        other = wide.isfinite().logical_not_()
        low, high = wide.masked_fill(other, torch.inf).amin(), wide.masked_fill_(other, -torch.inf).amax()
        wide.masked_fill_(other, 0.0)
        parts.append(torch.stack([low, high, wide.sum(), wide.square_().sum()]))
    lows, highs, totals, squares = torch.stack(parts, 1)
    return torch.stack([lows.amin(), highs.amax(), totals.sum(), squares.sum().sqrt()])


def _counts(values: torch.Tensor, fine: bool) -> torch.Tensor:
    is_nan = values.isnan()
    ordered = values.masked_fill(is_nan, torch.inf).sort().values
    up_to, below = _bounds(values.dtype, values.device, fine)
    nans = is_nan.sum().reshape(1)
    size = torch.full_like(nans, values.numel())
    not_above, not_reached = torch.searchsorted(ordered, up_to, right=True), torch.searchsorted(ordered, below)
    # How many are in a bucket or one before it: -Inf and the negative ones, 0, the positive ones, Inf, NaN.
    ends = torch.cat([not_above[:-1], not_reached[:1], not_above[-1:], not_reached[1:], size - nans, size])
    return torch.diff(ends, prepend=torch.zeros_like(nans))


@functools.lru_cache(maxsize=64)
def _bounds(dtype: torch.dtype, device: torch.device, fine: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The bounds of buckets: those that belong to the lower bucket, and those that belong to the upper one."""
    inner = sizes(fine)[1:-1]
    up_to, below = np.concatenate([[-np.inf], -inner[::-1], [0]]), np.concatenate([[0], inner, [np.inf]])
    first, second = (sent(torch.from_numpy(bounds).to(dtype), device) for bounds in (up_to, below))
    return first, second
