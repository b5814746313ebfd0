"""Shares of the channels of tensors that live on an accelerator, on their way to the host; see ``core.reductions``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.core.reductions.channels import END, EXCEPTION
from smd_agent.pytorch.device.reductions import HostCopy
from smd_agent.pytorch.tracing import without_gradients

Wanted = tuple[torch.Tensor, int, Sequence[str]]
"""A tensor, the axis of its channels, and which shares."""


class DeviceShares:
    """Shares of the channels of several tensors.

    Args:
        wanted: of one device, each tensor of a dtype that is known there; may be overwritten afterwards.
    """

    @without_gradients
    def __init__(self, wanted: Sequence[Wanted]) -> None:
        shares = []
        for tensor, axis, names in wanted:
            found = {"dead_share": _dead, "saturated_share": _saturated}
            shares += [found[name](tensor.detach(), axis) for name in names]
        self._copy = HostCopy(torch.stack(shares)) if shares else None

    def ready(self) -> bool:
        """Whether ``result`` would not wait."""
        return self._copy is None or self._copy.ready()

    def result(self) -> npt.NDArray[np.float64]:
        """The shares, tensor by tensor, 1-D; waits for the copy."""
        return np.empty(0) if self._copy is None else self._copy.array()


def _dead(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    return _share(tensor.eq(0).sum(_others(tensor, axis)) == _size(tensor, axis))


def _saturated(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    if not tensor.is_floating_point():
        return torch.zeros((), dtype=torch.float64, device=tensor.device)
    others, least = _others(tensor, axis), _size(tensor, axis)
    least -= least // EXCEPTION
    sizes = tensor.abs()
    high = sizes.ge(1 - END).sum(others)
    low = tensor.gt(0).logical_and_(tensor.le(END)).sum(others)
    is_sigmoid = tensor.lt(0).any().logical_not() & tensor.ge(1 - END).any()
    held = high + torch.where(is_sigmoid, low, torch.zeros_like(low)) >= least
    return torch.where(sizes.gt(1).any(), torch.zeros_like(_share(held)), _share(held))


def _share(held: torch.Tensor) -> torch.Tensor:
    # Of a sum, because a mean may be a product with a rounded number.
    return held.sum().to(torch.float64) / held.numel()


def _others(tensor: torch.Tensor, axis: int) -> list[int]:
    return [other for other in range(tensor.dim()) if other != axis]


def _size(tensor: torch.Tensor, axis: int) -> int:
    """How many elements a channel has."""
    return tensor.numel() // tensor.shape[axis]
