"""Sequences of tokens that a model was called with, and how far the targets of a loss are shifted against them.

See ``capture.loss_targets`` for the facts. The sequences of a call are its inputs of whole numbers with two axes, but
for masks, positions and labels by their usual names. Of several, the one that lies where the target does is the labels.
Where one is left, and is not called a target, targets are compared with it. Where several are, as an encoder and a
decoder are given one each, only the next tokens of that one are looked at whose size is the only one to fit; the same
size fits best.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import zip_longest
from types import FunctionType
from typing import Any, NamedTuple

import torch

from smd_agent.framework.loss_targets import Target
from smd_agent.framework.plain_access import attribute, in_class, own_dict
from smd_agent.framework.token_padding import PLACES, ROWS
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture import token_padding

AXES = 2
# Of each axis.
_LOOKED_AT = 64
# As transformers and programs like them call what is no sequence.
_OTHERS = ("mask", "label", "position", "token_type", "segment")
_TARGET = "target"


class _Sequence(NamedTuple):
    """Copies of parts of an input, its whole shape, where its elements begin, and whether its name is that of a target.

    part: the first elements along both axes.
    ends: the last elements along each axis, of several rows along the other one; the rows come first.
    """

    part: torch.Tensor
    ends: tuple[torch.Tensor, ...]
    shape: torch.Size
    begins: int
    is_target: bool


class Sequences:
    """The sequences that a model was called with last."""

    def __init__(self) -> None:
        self._found: list[_Sequence] = []
        self._end: int | None = None

    def take(self, model: Any, inputs: Any) -> None:
        """Remember those of a call of a model: positional arguments, and those by keyword."""
        self._found = []
        self._end = _end_of(model)
        for name, one in _given(model, inputs):
            is_sequence = one.dim() == AXES and is_whole(one) and has_memory(one)
            if is_sequence and not any(one.data_ptr() == other.begins for other in self._found):
                ends = tuple(rows[:ROWS, -PLACES:].clone() for rows in (one.t(), one))
                part = one[:_LOOKED_AT, :_LOOKED_AT].clone()
                self._found.append(_Sequence(part, ends, one.shape, one.data_ptr(), _TARGET in name))

    def clear(self) -> None:
        """Forget them."""
        self._found = []

    def compared(self, target: Target) -> dict[str, Any]:
        """The facts of a target of whole numbers; none where there are several sequences, or none of its size."""
        values, ignored, found = target.values, target.ignored, self._found
        if len(found) > 1:
            found = [one for one in found if one.begins != values.data_ptr()]
        several = len(found)
        if several > 1:
            found = _fitting(found, values)
        elif found and found[0].is_target:
            return {}
        if len(found) != 1 or found[0].part.device != values.device:
            return {}
        if ignored is not None and ignored >= 0:
            values = values.to(torch.int64).masked_fill(values == ignored, -1)
        numbers: dict[str, Any] = {"sequences": several} if several > 1 else {}
        ends = functools.partial(_ends, end=self._end)
        looks = (_next,) if several > 1 else (_next, _distinct, *((ends,) if target.is_plain else ()))
        for axis in range(AXES):
            for facts in looks:
                numbers |= {f"{name}_{axis}": number for name, number in facts(found[0], values, axis).items()}
        return numbers


def is_whole(tensor: torch.Tensor) -> bool:
    """True if the elements of a tensor are integers."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def _end_of(model: Any) -> int | None:
    """The token that ends a sequence, as a model of transformers has it in its configuration."""
    config = own_dict(model).get("config")
    end = attribute(config, "eos_token_id") if config is not None else None
    return end if type(end) is int else None


def _given(model: Any, inputs: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a model is given, each with the name of its argument; empty where that is not known."""
    args, kwargs = inputs
    forward = in_class(type(model), "forward")
    names = forward.__code__.co_varnames[1 : forward.__code__.co_argcount] if type(forward) is FunctionType else ()
    for name, value in (*zip_longest(names[: len(args)], args, fillvalue=""), *kwargs.items()):
        if not any(word in name for word in _OTHERS):
            yield from ((name, tensor) for tensor in tensors_in(value))


def _fitting(sequences: list[_Sequence], target: torch.Tensor) -> list[_Sequence]:
    """The sequences that a target may be of: those of its size, or else those that are longer by one place."""
    same = [one for one in sequences if one.shape.numel() == target.numel()]
    return same or [one for one in sequences if any(_along(target, one.shape, k, 1) is not None for k in range(AXES))]


def _along(target: torch.Tensor, shape: torch.Size, axis: int, fewest: int) -> torch.Tensor | None:
    """A target as it lies along an axis of the input, but for its end, of which it may lack so many places."""
    for missing in range(fewest + 1):
        shorter = [*shape]
        shorter[axis] -= missing
        if target.numel() == shorter[0] * shorter[1]:
            return target.reshape(shorter).narrow(axis, 0, shape[axis] - fewest)
    return None


def _next(sequence: _Sequence, target: torch.Tensor, axis: int) -> dict[str, Any]:
    """The share of targets that are the next tokens, along one axis; nothing where the target has another size."""
    length = sequence.shape[axis]
    whole = _along(target, sequence.shape, axis, 1) if length > 1 else None
    if whole is None:
        return {}
    before, later = _places(sequence.part, axis, 2)
    targets = whole[: later.shape[0], : later.shape[1]]
    compared = (later != before) & (targets >= 0)
    count = compared.sum()
    right = ((targets == later) & compared).sum()
    return {"length": length, "next": right / count.clamp(min=1), "compared": count}


def _distinct(sequence: _Sequence, target: torch.Tensor, axis: int) -> dict[str, Any]:
    """The shares of targets that are the tokens of the same places, and those after the next ones."""
    whole = _along(target, sequence.shape, axis, 2) if sequence.shape[axis] > 2 else None
    if whole is None:
        return {}
    same, following, second = _places(sequence.part, axis, 3)
    targets = whole[: same.shape[0], : same.shape[1]]
    compared = (same != following) & (following != second) & (same != second) & (targets >= 0)
    count = compared.sum()
    least = count.clamp(min=1)
    shares = [((targets == one) & compared).sum() / least for one in (same, second)]
    return {"same": shares[0], "second": shares[1], "distinct": count}


def _ends(sequence: _Sequence, target: torch.Tensor, axis: int, end: int | None) -> dict[str, Any]:
    """The facts of the padding of rows, as far as the target has their size."""
    whole = _along(target, sequence.shape, axis, 1) if sequence.shape[axis] > 2 else None
    if whole is None:
        return {}
    tokens = sequence.ends[axis]
    rows = whole if axis else whole.t()
    return token_padding.ends(tokens, rows[: tokens.shape[0], 1 - tokens.shape[1] :], end)


def _places(part: torch.Tensor, axis: int, count: int) -> list[torch.Tensor]:
    """So many parts of a sequence, each begins one place after the one before."""
    known = part.shape[axis] - count + 1
    return [part.narrow(axis, first, known) for first in range(count)]
