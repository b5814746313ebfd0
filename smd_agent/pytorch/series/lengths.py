"""Lengths (l2) of many tensors at once, past what the program sees: of gradients, and of what updates change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard, cast

import torch

from smd_agent.formats.series import ABSENT
from smd_agent.framework.plain_access import is_a
from smd_agent.pytorch.arrays import PLAIN_CLASSES, local_of
from smd_agent.pytorch.capture.l2_norms import length_of
from smd_agent.pytorch.own_operations import apart, without_gradients
from smd_agent.pytorch.series.late_rows import DEVICES, Number, Part

_WIDE = (torch.float32, torch.float64)
_NARROW = (torch.float16, torch.bfloat16)
# Squares of float32 between these neither overflow nor vanish.
_FEWEST, _MOST = 1e-15, 1e15


def is_measured(tensor: Any) -> TypeGuard[torch.Tensor]:
    """True if the length of a tensor can be had at once: a plain, dense one of floats."""
    return (
        type(tensor) in PLAIN_CLASSES
        and tensor.layout is torch.strided
        and (tensor.dtype in _WIDE or tensor.dtype in _NARROW)
        and (tensor.is_cpu or tensor.device.type in DEVICES)
    )


@apart
def measured_parts(
    parameters: Iterable[torch.Tensor | None], what: Callable[[torch.Tensor], torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """This rank's part of something of each parameter; None where there is none, or it is not measured."""
    found = [None if parameter is None else what(parameter) for parameter in parameters]
    parts = [None if one is None else local_of(one) for one in found]
    return [part if is_measured(part) else None for part in parts]


@apart
@without_gradients
def lengths_of(tensors: list[torch.Tensor | None]) -> list[Part]:
    """The lengths of tensors that are measured, in one pass for each device and dtype."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, tensor in enumerate(tensors):
        if tensor is not None:
            kinds.setdefault((tensor.device, tensor.dtype), []).append(place)
    return [_lengths(places, [cast("torch.Tensor", tensors[place]) for place in places]) for places in kinds.values()]


def _lengths(places: list[int], tensors: list[torch.Tensor]) -> Part:
    kept = {} if tensors[0].dtype in _WIDE else {"dtype": torch.float32}
    found = as_numbers(places, [*torch._foreach_norm(tensors, 2, **kept)])
    if type(found.values) is list and tensors[0].dtype is not torch.float64:
        for i, value in enumerate(found.values):
            if not _FEWEST < value < _MOST and not math.isnan(value) and tensors[i].numel():
                found.values[i] = float(length_of(tensors[i]))
    return found


@apart
@without_gradients
def as_numbers(places: list[int], lengths: list[torch.Tensor]) -> Part:
    """Lengths that are in tensors of one device."""
    found = torch.stack(lengths).to(torch.float64)
    return Part(places, found.tolist() if found.is_cpu else found)


@apart
@without_gradients
def together(lengths: list[Part], *others: Number) -> Number:
    """The length of all of them together, and of others, which may be ``ABSENT``; ``ABSENT`` where there are none."""
    totals = [other for other in others if other is not ABSENT]
    totals += [math.hypot(*one) if type(one) is list else torch.linalg.vector_norm(one) for _, one in lengths]
    if len(totals) == 1:
        return totals[0]
    late = [total for total in totals if is_a(total, torch.Tensor)]
    if late:
        # Of several devices one has them all.
        parts = [torch.as_tensor(total).to(late[0].device, torch.float64, non_blocking=True) for total in totals]
        whole: torch.Tensor = torch.linalg.vector_norm(torch.stack(parts))
        return whole
    return math.hypot(*totals) if totals else ABSENT
