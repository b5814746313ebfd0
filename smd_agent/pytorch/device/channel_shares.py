"""Shares of the channels of tensors that live on an accelerator, on their way to the host; see ``core.reductions``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.core.reductions.channels import END, EXCEPTION
from smd_agent.pytorch.device import free_memory
from smd_agent.pytorch.device.reductions import HostCopy
from smd_agent.pytorch.own_operations import without_gradients

Wanted = tuple[torch.Tensor, int, Sequence[str]]
"""A tensor, the axis of its channels, and which shares."""

_Test = Callable[[torch.Tensor], torch.Tensor]


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
        """True if ``result`` would not wait."""
        return self._copy is None or self._copy.ready()

    def result(self) -> npt.NDArray[np.float64]:
        """The shares, tensor by tensor, 1-D; waits for the copy."""
        return np.empty(0) if self._copy is None else self._copy.array()


def _dead(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    return _share(_counted(tensor, axis, lambda piece: piece.eq(0)) == _size(tensor, axis))


def _saturated(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    if not tensor.is_floating_point():
        return torch.zeros((), dtype=torch.float64, device=tensor.device)
    least = _size(tensor, axis)
    least -= least // EXCEPTION
    high = _counted(tensor, axis, lambda piece: piece.abs().ge_(1 - END))
    low = _counted(tensor, axis, lambda piece: piece.gt(0).logical_and_(piece.le(END)))
    is_sigmoid = ~_any(tensor, axis, lambda piece: piece.lt(0)) & _any(tensor, axis, lambda piece: piece.ge(1 - END))
    held = high + torch.where(is_sigmoid, low, torch.zeros_like(low)) >= least
    beyond = _any(tensor, axis, lambda piece: piece.abs().gt(1))
    return torch.where(beyond, torch.zeros_like(_share(held)), _share(held))


def _any(tensor: torch.Tensor, axis: int, wanted: _Test) -> torch.Tensor:
    """True if any element is wanted."""
    return torch.stack([wanted(piece).any() for piece in _pieces(tensor, axis)]).any()


def _counted(tensor: torch.Tensor, axis: int, wanted: _Test) -> torch.Tensor:
    """Number of elements of each channel that are wanted, int64."""
    found = [wanted(piece).sum(_others(piece, axis)) for piece in _pieces(tensor, axis)]
    return torch.stack(found).sum(0)


def _pieces(tensor: torch.Tensor, axis: int) -> Iterator[torch.Tensor]:
    """Parts that have all channels, small enough for the memory that there is."""
    sizes = {other: tensor.shape[other] for other in _others(tensor, axis)}
    longest = max(sizes, key=sizes.__getitem__, default=axis)
    if tensor.numel() <= free_memory.elements(tensor.device) or sizes.get(longest, 1) == 1:
        yield tensor
        return
    for part in torch.split(tensor, -(-sizes[longest] // 2), longest):
        yield from _pieces(part, axis)


def _share(held: torch.Tensor) -> torch.Tensor:
    # Of a sum, because a mean may be a product with a rounded number.
    return held.sum().to(torch.float64) / held.numel()


def _others(tensor: torch.Tensor, axis: int) -> list[int]:
    return [other for other in range(tensor.dim()) if other != axis]


def _size(tensor: torch.Tensor, axis: int) -> int:
    """Number of elements of a channel."""
    return tensor.numel() // tensor.shape[axis]
