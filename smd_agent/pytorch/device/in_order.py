"""Quantiles and histograms of tensors that live on an accelerator, from their elements in order.

Sorting waits for nobody and gives the same each time, which counting and picking on an accelerator do not. It takes
several times the tensor's memory, so a quantile is taken of few elements (see ``room``) and a histogram in pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.core.names import Op
from smd_agent.core.reductions.formulas import QUANTILES
from smd_agent.core.reductions.histogram import BUCKETS, FINE_BUCKETS, sizes
from smd_agent.core.reductions.quantile import ranks_of, weighted
from smd_agent.pytorch.arrays import sent
from smd_agent.pytorch.device import room

_NARROW = (torch.float16, torch.bfloat16, torch.float32, torch.uint8, torch.int8, torch.int16, torch.bool)


def elements_for(tensor: torch.Tensor, ops: Sequence[Op]) -> torch.Tensor:
    """What ``quantiles_from`` needs, on the tensor's device.

    Args:
        tensor: real, strided, with elements.
        ops: of ``QUANTILES``, with whether it is of absolute values.

    Returns:
        Of each op the two elements next to its rank, and a NaN if there is one; float64, of shape ``(3 * len(ops),)``.
    """
    flat = tensor.detach().reshape(-1)
    ordered: dict[bool, torch.Tensor] = {}
    found = []
    for name, absolute in ops:
        if absolute not in ordered:
            # The absolute value of the smallest integer is no integer of its type.
            values = flat if flat.is_floating_point() or not absolute else flat.to(torch.float64)
            values = values.to(torch.uint8) if values.dtype is torch.bool else values
            ordered[absolute] = (values.abs() if absolute else values).sort().values
        first, second, _ = ranks_of(flat.numel(), QUANTILES[name])
        found += [ordered[absolute][place].to(torch.float64) for place in (first, second, -1)]
    return torch.stack(found)


def quantiles_from(elements: npt.NDArray[Any], size: int, ops: Sequence[Op]) -> list[float]:
    """The quantiles of a tensor of this many elements, from what ``elements_for`` gave."""
    parts = elements.reshape(-1, 3).tolist()
    return [
        last if last != last else weighted(a, b, ranks_of(size, QUANTILES[name])[2])
        for (name, _), (a, b, last) in zip(ops, parts, strict=True)
    ]


def histogram_of(tensor: torch.Tensor, fine: bool = False) -> torch.Tensor:
    """The histogram of a real, strided tensor as ``core.reductions.histogram`` describes it, int64, on its device."""
    flat = tensor.detach().reshape(-1)
    wide = torch.float32 if flat.dtype in _NARROW else torch.float64
    counts = torch.zeros(FINE_BUCKETS if fine else BUCKETS, dtype=torch.int64, device=flat.device)
    for piece in torch.split(flat, room.elements(flat.device)):
        counts += _counts(piece.to(wide), fine)
    return counts


def finite_sums(tensor: torch.Tensor) -> torch.Tensor:
    """Smallest, largest, sum and root of the sum of squares of a tensor's finite elements; float64, on its device."""
    flat = tensor.detach().reshape(-1)
    parts = []
    for piece in torch.split(flat, room.elements(flat.device)):
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
