"""Medians and other quantiles of tensors that live on an accelerator, from their elements in order.

Sorting waits for nobody and gives the same each time, which picking on an accelerator does not. It takes several times
the tensor's memory, so a quantile is taken of few elements (see ``room``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import torch

from smd_agent.core.names import Op
from smd_agent.core.reductions.formulas import QUANTILES
from smd_agent.core.reductions.quantile import ranks_of, weighted


def elements_for(tensor: torch.Tensor, ops: Sequence[Op]) -> torch.Tensor:
    """The elements that ``quantiles_from`` needs, on the tensor's device.

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
