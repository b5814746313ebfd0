"""Losses that the program works out by itself, and that compare each prediction with each target.

``usage/loss/own_loss_<i>/input_repeated``, ``target_repeated``: how often each element comes because the shapes of the
two are (N, 1) and (N,), which are broadcast to (N, N); else 1. They are told from the graph behind the i-th tensor that
a backward pass of the step starts from, down to where predictions and targets meet: to an operation of which one
operand is differentiated and the other is not. Of a loss without such a one there is nothing.

A sum over all pairs of what is computed of each pair alone has no use: it draws all predictions to one value. Where it
is weighted by the pair, or two operands of (N, N) are differentiated, pairs are meant, and nothing is said. The graph
does not tell the shape of what is subtracted: there the difference itself tells it, if the graph has kept it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import BeforeBackward, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture.loss_inputs import SAME_VALUES
from smd_agent.pytorch.own_operations import without_gradients

Shape = tuple[int, ...]

# Tensors that passes of a step start from, and nodes of the graph that are looked at behind each.
_LOSSES = 4
_NODES = 128
# And of those that compare what has other shapes.
_NEAR = 8
_ROWS = 8

_REDUCTIONS = {"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"}
_SUMS = {"AddBackward0", "SubBackward0"}
_PRODUCTS = {"MulBackward0", "DivBackward0"}
# Those that keep a multiple of what was compared as it was, up to a constant.
_AFFINE = {*_SUMS, *_PRODUCTS, "NegBackward0", "RsubBackward1"}
_OF_TWO = {"MaximumBackward0", "MinimumBackward0"}
# What is computed of each element alone, and of reductions those that do so first.
_ELEMENTWISE = {
    *_AFFINE,
    *_OF_TWO,
    *("AbsBackward0", "ClampBackward0", "ClampBackward1", "ClampMinBackward0", "CoshBackward0", "LogBackward0"),
    *("LinalgVectorNormBackward0", "LogSigmoidBackward0", "NormBackward0", "PowBackward0", "ReluBackward0"),
    *("SoftplusBackward0", "SqrtBackward0", "WhereBackward0"),
}


class OwnLosses(UsageProbe, domain=LOSS_FACTS, doing="looking at a loss that is not the framework's"):
    """The losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._count = 0

    @on(BeforeBackward)
    @without_gradients
    def before_backward(self, backward: BeforeBackward) -> None:
        """A backward pass is about to start from these."""
        for start in tensors_in(backward.tensors):
            if self._count >= _LOSSES or start.grad_fn is None:
                return
            repeated = _Walk().repeated(start.grad_fn)
            if repeated is not None:
                numbers = {"input_repeated": repeated, "target_repeated": repeated}
                self._usage.save(f"loss/own_loss_{self._count}", numbers, here=True)
            self._count += 1


class _Found(NamedTuple):
    """A node of the graph on the way from the loss.

    node: it.
    difference: what the nearest function behind it that is not affine was given; None if that is not known.
    curved: whether there is such a function.
    shifted: whether anything may have been added between the two.
    """

    node: Any
    difference: torch.Tensor | None = None
    curved: bool = False
    shifted: bool = False


class _Walk:
    """The way from one loss to what it compares."""

    def __init__(self) -> None:
        self._todo: list[_Found] = []
        self._seen: set[Any] = set()
        self._compares = False
        self._repeated: torch.Tensor | float = 1.0

    def repeated(self, start: Any) -> torch.Tensor | float | None:
        """Number of times that each element comes; None of a loss that compares nothing, or if that is not known."""
        self._push(_Found(start))
        while self._todo:
            if len(self._seen) > _NODES or not self._pass(self._todo.pop()):
                return None
        return self._repeated if self._compares else None

    def _push(self, found: _Found) -> None:
        if found.node not in self._seen:
            self._seen.add(found.node)
            self._todo.append(found)

    def _pass(self, found: _Found) -> bool:
        """Go on to what a node was computed of; False where pairs are meant."""
        node, name = found.node, found.node.name()
        made = _made(node)
        if made is None:
            return True
        sources = [(place, source, shape) for place, (source, shape) in enumerate(_sources(node)) if source is not None]
        if math.prod(made) == 1 and all(math.prod(shape) == 1 for _, _, shape in sources):
            for _, source, _ in sources:
                self._push(_Found(source))
        elif name in _REDUCTIONS or name in SAME_VALUES:
            for _, source, _ in sources:
                self._push(found._replace(node=source))
        elif name not in _ELEMENTWISE:
            return not _is_square(made)
        else:
            return self._pass_elementwise(found, name, made, sources)
        return True

    def _pass_elementwise(
        self, found: _Found, name: str, made: Shape, sources: Sequence[tuple[int, Any, Shape]]
    ) -> bool:
        node = found.node
        has_other = len(sources) == 1 and len(node.next_functions) == 2
        given = max((shape for _, _, shape in sources), key=math.prod, default=made)
        if not _is_square(given if name.endswith("NormBackward0") else made):
            self._compares = self._compares or _is_comparison(node)
            return True
        self._compares = self._compares or has_other
        if math.prod(given) < math.prod(made):
            if not has_other or name not in _AFFINE:
                return False
            self._meet(found, name, given)
            return True
        other = _other(node, sources[0][0]) if has_other and name in _PRODUCTS else None
        weights = 1 if other is None else other.numel()
        if weights > max(given) or (name == "WhereBackward0" and len(sources) < 2):
            # Some of the pairs are chosen.
            return False
        for place, source, shape in sources:
            if shape == given:
                self._push(self._next(found, name, place, source, has_other, weights))
        return True

    def _next(self, found: _Found, name: str, place: int, source: Any, has_other: bool, weights: int) -> _Found:
        is_product = name in _PRODUCTS
        if name in _AFFINE and (not is_product or (has_other and weights == 1)):
            shifted = found.shifted or (found.curved and has_other and name in _SUMS)
            return found._replace(node=source, shifted=shifted)
        if is_product and has_other:
            return found._replace(node=source, difference=None)
        saved = "other" if name in _OF_TWO and place else "self"
        return _Found(source, _kept(found.node, saved), curved=True)

    def _meet(self, found: _Found, name: str, given: Shape) -> None:
        """Look at an operation at which a column may meet a row; ``given`` is the shape of the one differentiated."""
        made = _made(found.node) or ()
        if name in _PRODUCTS:
            other = _other(found.node, next(place for place, (one, _) in enumerate(_sources(found.node)) if one))
            if other is not None and not found.shifted and _are_crossed(given, tuple(other.shape)):
                self._repeated = float(made[0])
        elif name in _SUMS and found.difference is not None:
            dtype = found.node._input_metadata[0].dtype
            crossed = _is_sum_of_column_and_row(found.difference.detach(), dtype)
            self._repeated = torch.where(crossed, float(made[0]), self._repeated)


def _is_comparison(node: Any) -> bool:
    """True if what a node has made comes from an operand that is differentiated and from one that is not."""
    for _ in range(_NEAR):
        sources = [source for source, _ in node.next_functions if source is not None]
        if node.name() not in _ELEMENTWISE | SAME_VALUES or not sources:
            return False
        if len(sources) == 1 and len(node.next_functions) == 2:
            return True
        node = sources[0]
    return False


def _made(node: Any) -> Shape | None:
    """The shape of what a node has made; None where it does not tell."""
    told = getattr(node, "_input_metadata", None)
    return tuple(told[0].shape) if told else None


def _sources(node: Any) -> list[tuple[Any, Shape]]:
    """The nodes that a node was computed of, with its shape; None in the place of what is not differentiated."""
    found: list[tuple[Any, Shape]] = []
    for source, number in node.next_functions:
        told = () if source is None else getattr(source, "_input_metadata", ())
        known = number < len(told)
        found.append((source, tuple(told[number].shape)) if known else (None, ()))
    return found


def _other(node: Any, place: int) -> torch.Tensor | None:
    """The operand of a product that is not differentiated, by the place of the one that is."""
    return _kept(node, "other" if place == 0 else "self")


def _kept(node: Any, name: str) -> torch.Tensor | None:
    """A tensor that a node has kept as it is; one that somebody packs is not unpacked, as that may compute it again."""
    kept = getattr(node, f"_raw_saved_{name}", None)
    if kept is None or getattr(kept, "unpack_hook", kept) is not None:
        return None
    tensor = kept.data
    return tensor if is_a(tensor, torch.Tensor) and has_memory(tensor) else None


def _is_square(shape: Shape) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] > 1


def _are_crossed(one: Shape, other: Shape) -> bool:
    """True if one is a column and the other a row."""
    return sorted((_lies(one), _lies(other))) == ["column", "row"]


def _lies(shape: Shape) -> str:
    if len(shape) == 2 and shape[1] == 1 < shape[0]:
        return "column"
    return "row" if shape and math.prod(shape) == shape[-1] > 1 else ""


def _is_sum_of_column_and_row(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """True if a square is made of a column and a row that is not the same column, up to rounding: of shape ()."""
    if not (_is_square(tuple(values.shape)) and values.is_floating_point()):
        return values.new_zeros((), dtype=torch.bool)
    noise = _ROWS * max(torch.finfo(values.dtype).eps, torch.finfo(dtype).eps if dtype.is_floating_point else 0.0)
    rows = values[:_ROWS].to(torch.float64 if values.dtype is torch.float64 else torch.float32)
    allowed = noise * rows.abs().amax()
    beside = rows - rows[:1]
    # What is compared with itself is 0 along the diagonal.
    return ((beside - beside[:, :1]).abs().amax() <= allowed) & (rows.diagonal().abs().amax() > allowed)
