"""Losses that a program with tapes works out by itself, and that compare each prediction with each target.

``usage/loss/own_loss_<i>/input_repeated``, ``target_repeated``: how often each element comes because the shapes of the
two are (N, 1) and (N,), which are broadcast to (N, N); else 1. They are told from the graph before the i-th tensor that
tapes differentiate, while the function is traced or as an eager step was recorded, down to where predictions and
targets meet: to an operation of which one operand comes from a variable that is trained and the other does not. Of a
loss without such a one there is nothing. A loss of Keras's looks the same there, and is told of too.

``activated``, ``expects_logits``: of a loss with an operation that applies softmax itself, whether its logits are what
a softmax has returned, and 1.

A sum over all pairs of what is computed of each pair alone has no use: it draws all predictions to one value. Where it
is weighted by the pair, or two operands of (N, N) are trained, pairs are meant, and nothing is said. Where a size is
not known when the function is traced, it is looked at when that has run: that of the two operands, or of what it was
called with and they have the rows of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from smd_agent.tensorflow.graph.function_rewrite import Output, Tap, output_of
from smd_agent.tensorflow.graph.loss_graph import LossGraph
from smd_agent.tensorflow.types import Tensor

Shape = tuple[int | None, ...]

# Operations that are looked at behind each loss, and of those that compare what has other shapes.
_OPERATIONS = 128
_NEAR = 8

_REDUCTIONS = ("Mean", "Sum")
_SAME_VALUES = ("Cast", "Identity", "Reshape", "Squeeze", "ExpandDims")
_SUMS = ("Add", "AddV2", "Sub")
_PRODUCTS = ("Mul", "RealDiv", "DivNoNan")
# Those that keep a multiple of what was compared as it was, up to a constant.
_AFFINE = (*_SUMS, *_PRODUCTS, "Neg")
_SQUARED = "SquaredDifference"
_CHOICES = ("Select", "SelectV2")
# What is computed of each element alone.
_ELEMENTWISE = (
    *(*_AFFINE, *_CHOICES, _SQUARED),
    *("Abs", "ClipByValue", "Cosh", "Log", "Log1p", "Maximum", "Minimum", "Pow", "Relu", "Softplus", "Sqrt", "Square"),
)
# Of which the result has the rows of the first input.
_BY_ROWS = ("AvgPool", "BiasAdd", "Conv2D", "MatMul", "MaxPool")
_SAME_ROWS = ("Cast", "Elu", "Exp", "Identity", "LeakyRelu", "Relu6", "Selu", "Sigmoid", "Softmax", "Softsign", "Tanh")


@dataclass(frozen=True, eq=False)
class OwnLoss:
    """A loss that is worked out in a traced function.

    repeated: how often each element comes, as far as that was known then; None of one that compares nothing.
    pairs: columns and rows that meet in it, of which that is not known.
    activated: whether logits in it are what a softmax has returned; None of one without logits.
    """

    repeated: float | None = None
    pairs: tuple[tuple[Output, Output], ...] = ()
    activated: bool | None = None

    @property
    def sides(self) -> list[Output]:
        """The columns and rows that have to be had of the function, in turn, or what is as long."""
        return [side for pair in self.pairs for side in pair]

    def taps(self) -> Iterator[Tap]:
        """The same, as taps."""
        for number, output in enumerate(self.sides):
            yield Tap(TracedSide(self, number), output)

    def facts_in(self, seen: Mapping[TracedSide, Any]) -> dict[str, float]:
        """The facts of a step, by name.

        Args:
            seen: the values of the taps, as far as they are to be had, perhaps among those of others.
        """
        return self.facts_of({side.number: int(value.shape[0]) for side, value in seen.items() if side.loss is self})

    def facts_of(self, sizes: Mapping[int, int]) -> dict[str, float]:
        """The same, by the lengths of its sides, as far as they are known, by number."""
        repeated = self._repeated_of(sizes)
        numbers = {} if repeated is None else {"input_repeated": repeated, "target_repeated": repeated}
        if self.activated is not None:
            numbers |= {"activated": float(self.activated), "expects_logits": 1.0}
        return numbers

    def _repeated_of(self, sizes: Mapping[int, int]) -> float | None:
        """The number of times that each element comes; None if that is not known."""
        if self.repeated is None or (len(sizes) < 2 * len(self.pairs) and self.repeated <= 1):
            return None
        pairs = [(sizes.get(2 * number, 1), sizes.get(2 * number + 1, 1)) for number in range(len(self.pairs))]
        return max([self.repeated, *(float(one) for one, other in pairs if one == other)])


@dataclass(frozen=True, eq=False)
class TracedSide:
    """A side of a comparison in a traced function: what a tap of the function gives.

    number: of two each of the loss.
    """

    loss: OwnLoss
    number: int

    @property
    def fragile(self) -> bool:
        """XLA may fuse it into the loss."""
        return True


def own_loss_of(graph: LossGraph, target: Tensor) -> OwnLoss | None:
    """Facts of a loss that its graph tells; None without any, as of one that compares nothing and has no logits.

    Args:
        graph: what stands before it.
        target: the loss.
    """
    found, activated = _Walk(graph).followed(target), graph.has_activated_logits()
    if activated is None:
        return found
    return replace(found, activated=activated) if found else OwnLoss(activated=activated)


class _Found(NamedTuple):
    """A tensor on the way from the loss.

    tensor: it.
    curved: whether a function that is not affine is behind it.
    shifted: whether anything may have been added between the two.
    """

    tensor: Any
    curved: bool = False
    shifted: bool = False


class _Walk:
    """The way from one loss to what it compares."""

    def __init__(self, graph: LossGraph) -> None:
        self._graph = graph
        self._todo: list[_Found] = []
        self._seen: set[str] = set()
        self._compares = False
        self._repeated = 1.0
        self._pairs: list[tuple[Output, Output]] = []

    def followed(self, target: Tensor) -> OwnLoss | None:
        """The loss, if it compares anything and no pairs are meant."""
        self._push(_Found(target))
        while self._todo:
            if len(self._seen) > _OPERATIONS or not self._pass(self._todo.pop()):
                return None
        return OwnLoss(self._repeated, tuple(self._pairs)) if self._compares else None

    def _push(self, found: _Found) -> None:
        if found.tensor.name not in self._seen:
            self._seen.add(found.tensor.name)
            self._todo.append(found)

    def _pass(self, found: _Found) -> bool:
        """Go on to what a tensor was computed of; False where pairs are meant, or nobody knows."""
        operation, made = found.tensor.op, _shape(found.tensor)
        if made is None:
            return False
        trained = [given for given in operation.inputs if self._graph.is_trained(given)]
        if all(_is_one(shape) for shape in (made, *map(_shape, trained))):
            for given in trained:
                self._push(_Found(given))
        elif operation.type in (*_REDUCTIONS, *_SAME_VALUES) or self._is_scaled(operation):
            for given in trained[:1]:
                self._push(found._replace(tensor=given))
        elif operation.type not in _ELEMENTWISE:
            return not _is_square(made)
        elif not _is_square(made):
            self._compares = self._compares or self._is_comparison(found.tensor)
        else:
            return self._pass_elementwise(found, operation, trained)
        return True

    def _is_scaled(self, operation: Any) -> bool:
        """True if an operation multiplies with one number, as Keras 2 does with the weight of a whole loss."""
        others = [given for given in operation.inputs if not self._graph.is_trained(given)]
        return operation.type in _PRODUCTS and len(others) == 1 and _is_one(_shape(others[0]))

    def _pass_elementwise(self, found: _Found, operation: Any, trained: Sequence[Any]) -> bool:
        kind, inputs = operation.type, [*operation.inputs]
        shapes = [_shape(given) for given in inputs]
        others = [shape for given, shape in zip(inputs, shapes, strict=True) if not self._graph.is_trained(given)]
        if kind in _CHOICES:
            if not all(self._graph.is_trained(given) for given in inputs):
                # Some of the pairs are chosen.
                return False
            trained = inputs[1:]
        elif _are_crossed(shapes):
            return len(others) == 1 and self._meet(found, kind, inputs)
        elif any(_is_square(shape) for shape in others):
            return False
        for given in trained:
            if not _is_square(_shape(given)):
                # Here something else is repeated.
                return False
            self._push(_next(found, kind, given, has_other=bool(others)))
        return True

    def _meet(self, found: _Found, kind: str, inputs: Sequence[Any]) -> bool:
        """Look at an operation at which a column meets a row of which one is trained."""
        is_curved = kind == _SQUARED or (found.curved and kind in _SUMS)
        if is_curved or (kind in _PRODUCTS and not found.shifted):
            self._compares = True
            column, row = sorted(inputs, key=lambda given: -len(given.shape))
            size = column.shape[0]
            if size is not None and row.shape[0] is not None:
                self._repeated = float(size)
            else:
                graph = column.graph
                self._pairs.append((output_of(_as_long(column), graph), output_of(_as_long(row), graph)))
        return True

    def _is_comparison(self, tensor: Any) -> bool:
        """True if a tensor comes from an operand that is trained and from one that is not."""
        for _ in range(_NEAR):
            inputs = [*tensor.op.inputs]
            trained = [given for given in inputs if self._graph.is_trained(given)]
            if tensor.op.type not in (*_ELEMENTWISE, *_SAME_VALUES) or not trained:
                return False
            others = [given for given in inputs if not self._graph.is_trained(given)]
            if tensor.op.type in (*_AFFINE, _SQUARED) and any(not _is_one(_shape(given)) for given in others):
                return True
            tensor = trained[0]
        return False


def _as_long(tensor: Any) -> Any:
    """A tensor with as many rows that the function was called with; where none is found, the tensor itself.

    Of a function that XLA compiles no other can be had.
    """
    found = tensor
    for _ in range(_OPERATIONS):
        kind, inputs = found.op.type, [*found.op.inputs]
        if kind == "Placeholder":
            return found
        if kind in (*_BY_ROWS, *_SAME_ROWS) and not (kind == "MatMul" and found.op.get_attr("transpose_a")):
            found = inputs[0]
            continue
        if kind == "Squeeze" and found.op.get_attr("squeeze_dims") and 0 not in _squeezed(found.op):
            found = inputs[0]
            continue
        inputs = inputs[1:] if kind in _CHOICES else inputs
        # One with fewer axes is repeated for each row.
        as_many = [given for given in inputs if given.shape.rank == found.shape.rank is not None]
        fewer = [given for given in inputs if _has_fewer_axes(given, found)]
        if kind not in _ELEMENTWISE or len(as_many) != 1 or len(as_many) + len(fewer) != len(inputs):
            break
        found = as_many[0]
    return tensor


def _squeezed(operation: Any) -> set[int]:
    rank = operation.inputs[0].shape.rank
    # Of an unknown rank, it may be any.
    return {0} if rank is None else {axis % rank for axis in operation.get_attr("squeeze_dims")}


def _has_fewer_axes(given: Any, than: Any) -> bool:
    return given.shape.rank is not None and than.shape.rank is not None and given.shape.rank < than.shape.rank


def _next(found: _Found, kind: str, given: Any, has_other: bool) -> _Found:
    if kind in _AFFINE and (has_other or kind not in _PRODUCTS):
        return _Found(given, found.curved, found.shifted or (found.curved and has_other and kind in _SUMS))
    return _Found(given, curved=True, shifted=found.shifted)


def _shape(tensor: Any) -> Shape | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _is_one(shape: Shape | None) -> bool:
    return shape is not None and None not in shape and math.prod(size or 0 for size in shape) == 1


def _is_square(shape: Shape | None) -> bool:
    """True if a shape may be that of all pairs."""
    return shape is None or (len(shape) == 2 and 1 not in shape and (None in shape or shape[0] == shape[1]))


def _are_crossed(shapes: Sequence[Shape | None]) -> bool:
    """True if there are two, of a column and of a row that may be as long."""
    if len(shapes) != 2 or None in shapes:
        return False
    row, column = sorted((shape for shape in shapes if shape is not None), key=len)
    if len(row) != 1 or len(column) != 2 or column[1] != 1:
        return False
    sizes = {size for size in (row[0], column[0]) if size is not None}
    return len(sizes) < 2 and 1 not in sizes
