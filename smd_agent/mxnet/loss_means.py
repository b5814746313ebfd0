"""Means over samples from which backward passes start, by the graphs of autograd and of hybridized blocks.

A mean over all elements of what has a sample for each place of its first axis is one over the samples. So is a sum that
is divided by their number. Of what a model or a loss has returned the shape is known; of all that is computed from it
elementwise, or by taking other axes together, the first axis is the same.
"""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mxnet.gluon import Block
from mxnet.ndarray import NDArray

from smd_agent.mxnet.arrays import arrays_in, plain
from smd_agent.mxnet.hybridized import graph_of, is_active, operation_of
from smd_agent.mxnet.loss_graph import Graph, Output, graph_of_symbol, recorded

_BLOCK = "_CachedOp"
_MEANS = {"mean", "_npi_mean"}
_SUMS = {"sum", "_np_sum", "_npi_sum"}
_ADDING = {"_npi_add", "_npi_subtract", "add_n", "broadcast_add", "broadcast_sub", "elemwise_add", "elemwise_sub"}
# The same values in another shape.
_SHAPING = {
    *("Flatten", "Reshape", "_np_reshape", "_np_squeeze", "_npi_squeeze", "_npx_reshape", "expand_dims", "squeeze"),
}
_SAME = {
    *("Cast", "_copy", "_np_copy", "amp_cast", "negative", "_npi_negative"),
    *("_plus_scalar", "_minus_scalar", "_rminus_scalar"),
    *("_npi_add_scalar", "_npi_subtract_scalar", "_npi_rsubtract_scalar"),
}
_TIMES = {"_mul_scalar", "_npi_multiply_scalar"}
_DIVIDED = {"_div_scalar", "_npi_true_divide_scalar"}
_ELEMENTWISE = {
    *_SAME,
    *_ADDING,
    *("abs", "clip", "erf", "exp", "expm1", "log", "log1p", "relu", "sigmoid", "sign", "smooth_l1", "softsign"),
    *("sqrt", "square", "tanh", "where", "Activation", "LeakyReLU", "log_softmax", "softmax"),
    *("broadcast_div", "broadcast_maximum", "broadcast_minimum", "broadcast_mul", "broadcast_power"),
    *("elemwise_div", "elemwise_mul", "_maximum", "_minimum"),
    *("_npi_absolute", "_npi_exp", "_npi_expm1", "_npi_log", "_npi_log1p", "_npi_sqrt", "_npi_square", "_npi_tanh"),
    *("_npi_maximum", "_npi_minimum", "_npi_multiply", "_npi_power", "_npi_true_divide", "_npi_where"),
    *("_npx_log_softmax", "_npx_relu", "_npx_sigmoid", "_npx_softmax", "_npx_activation", "_npx_leaky_relu"),
}
_BY_A_NUMBER = re.compile(r"_[a-z_]+_scalar")
_PICKING = {"pick", "_npx_pick"}
_CHANGING = {*_MEANS, *_SUMS, *_PICKING, *_SHAPING, "reshape_like", "_npx_reshape_like"}
# Operations that are looked at of one backward pass.
_MOST = 200
# Results of blocks that are kept: the latest of all, and those that no block around has gone on with.
_KEPT = 8
_OUTERMOST = 16
# A factor is rounded.
NOISE = 1e-4


class _Result(NamedTuple):
    """Something that a block has returned.

    array: one of its arrays.
    block, place: it, and which of its outputs that is.
    inputs: shapes of what it was given.
    """

    array: NDArray
    block: weakref.ref[Block]
    place: int
    inputs: list[tuple[int, ...]]


class _Shape(NamedTuple):
    """The shape of an array, as far as it is known.

    samples: along the first axis of what it was computed from.
    axes: how many it has; None if its first one may be another.
    """

    samples: int
    axes: int | None


class _Scope(NamedTuple):
    """A graph that is walked through.

    outer: where the inputs of a hybridized block come from, and the scope that this is in; None for the outermost.
    inputs: shapes of what such a block was given, by the names of its variables.
    """

    nodes: list[dict[str, Any]]
    outer: tuple[list[Output], _Scope] | None = None
    inputs: Mapping[str, tuple[int, ...]] = MappingProxyType({})


class LossMeans:
    """The graphs behind the losses of one saved step."""

    def __init__(self) -> None:
        self._latest: deque[_Result] = deque(maxlen=_KEPT)
        self._outermost: deque[_Result] = deque(maxlen=_OUTERMOST)

    def add(self, block: Block, inputs: Any, outputs: Any, outermost: bool) -> None:
        """A block has returned; ``outermost``: no block that is known has called it."""
        kept = self._outermost if outermost else self._latest
        reference, shapes = weakref.ref(block), [plain(array).shape for array in arrays_in(inputs)]
        kept.extend(_Result(array, reference, place, shapes) for place, array in enumerate(arrays_in(outputs)))

    def forget(self) -> None:
        """Let go of all arrays."""
        self._latest.clear()
        self._outermost.clear()

    def samples_of(self, head: NDArray) -> int | None:
        """The number of samples that a backward pass starts from the mean of; 0 if it is none, None if that is unknown.

        To be asked before the pass frees the graph.
        """
        results = [*self._outermost, *self._latest]
        if plain(head).size > 1 and any(result.array is head for result in results):
            return 0
        graph = recorded(plain(head))
        return None if graph is None else _Walk(results).samples_of(graph, head)


class _Walk:
    """A walk from one head back, as far as it takes."""

    def __init__(self, results: list[_Result]) -> None:
        self._results = [(found.made_by, one) for one in results if (found := recorded(plain(one.array))) is not None]
        self._left = _MOST

    def samples_of(self, graph: Graph, head: NDArray) -> int | None:
        """See ``LossMeans.samples_of``."""
        shape = plain(head).shape
        if plain(head).size > 1:
            return self._of_many(_Scope(graph.nodes), graph.head, shape[0])
        found = {*self._terms(_Scope(graph.nodes), graph.head, 1.0)}
        return found.pop() if len(found) == 1 else None

    def _of_many(self, scope: _Scope, output: Output, samples: int) -> int | None:
        """The same of a loss that is not reduced: if that of each sample was divided by how many there are."""
        factor = 1.0
        while self._goes_on() and not self._is_result(scope, output):
            node = scope.nodes[output[0]]
            times = _factor(node)
            if times is None:
                break
            factor *= times
            output = _inputs(node)[0]
        return samples if samples > 1 and abs(factor * samples - 1) <= NOISE else 0

    def _terms(self, scope: _Scope, output: Output, factor: float) -> Iterator[int | None]:
        """Each term that has been added to a number, as ``samples_of`` has it; all are multiplied by the factor."""
        if not self._goes_on():
            yield None
            return
        node = scope.nodes[output[0]]
        times, kind = _factor(node), node["op"]
        if times is not None:
            yield from self._terms(scope, _inputs(node)[0], factor * times)
        elif kind in _ADDING:
            for one in _inputs(node):
                yield from self._terms(scope, one, factor)
        elif kind in _MEANS or kind in _SUMS:
            yield self._reduced(scope, node, factor)
        elif kind == _BLOCK and (inside := self._inside(scope, output)) is not None:
            yield from self._terms(*inside, factor)
        else:
            yield None

    def _reduced(self, scope: _Scope, node: Mapping[str, Any], factor: float) -> int | None:
        shape = self._shape(scope, _inputs(node)[0])
        if shape is None or shape.samples < 2:
            return None
        if node["op"] in _SUMS:
            return shape.samples if abs(factor * shape.samples - 1) <= NOISE else 0
        # A mean that is multiplied is a sum again, or weighs more than another loss.
        return shape.samples if 0 < factor <= 1 + NOISE else None

    def _shape(self, scope: _Scope, output: Output) -> _Shape | None:
        """The shape of what an operation has returned, by those of what blocks have."""
        if not self._goes_on():
            return None
        result = self._result(scope, output)
        if result is not None:
            return _known(plain(result.array).shape)
        node = scope.nodes[output[0]]
        kind, inputs = node["op"], _inputs(node)
        if kind == "null":
            found = _of_outer(scope, output)
            shape = None if found is None else self._shape(*found)
            return shape or _known(scope.inputs.get(node["name"], ()))
        if kind == _BLOCK:
            inside = self._inside(scope, output)
            return None if inside is None else self._shape(*inside)
        if kind in _ELEMENTWISE or _BY_A_NUMBER.fullmatch(kind):
            shapes = [shape for one in inputs if (shape := self._shape(scope, one)) is not None]
            return max(shapes, key=lambda shape: (shape.samples, shape.axes or 0), default=None)
        shape = self._shape(scope, inputs[0]) if kind in _CHANGING else None
        if kind in _PICKING:
            # It is picked by a number for each sample.
            return self._shape(scope, inputs[1]) if shape is None else _without(shape, node)
        if shape is None:
            return None
        return _without(shape, node) if kind in _MEANS or kind in _SUMS else _Shape(shape.samples, None)

    def _goes_on(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def _is_result(self, scope: _Scope, output: Output) -> bool:
        return self._result(scope, output) is not None

    def _result(self, scope: _Scope, output: Output) -> _Result | None:
        """The result of a block that is this output; inside of a hybridized one names stand for something else."""
        if scope.outer is not None:
            return None
        made_by = scope.nodes[output[0]]["name"], output[1]
        return next((result for made, result in self._results if made == made_by), None)

    def _inside(self, scope: _Scope, output: Output) -> tuple[_Scope, Output] | None:
        """The place inside of a hybridized block that one of its outputs comes from."""
        result = self._result(scope, output)
        block = None if result is None else result.block()
        if result is None or block is None or not is_active(block) or operation_of(block) is None:
            return None
        found = graph_of(block)
        if not found:
            return None
        graph = graph_of_symbol(found[1], result.place)
        inputs = _inputs(scope.nodes[output[0]])
        if sum(node["op"] == "null" for node in graph.nodes) != len(inputs):
            return None
        shapes = dict(zip([symbol.name for symbol in found[0]], result.inputs, strict=False))
        return _Scope(graph.nodes, (inputs, scope), shapes), graph.head


def _known(shape: tuple[int, ...]) -> _Shape | None:
    return _Shape(shape[0], len(shape)) if shape else None


def _of_outer(scope: _Scope, output: Output) -> tuple[_Scope, Output] | None:
    """The place outside of a hybridized block that one of its variables comes from."""
    if scope.outer is None:
        return None
    inputs, outer = scope.outer
    return outer, inputs[sum(node["op"] == "null" for node in scope.nodes[: output[0]])]


def _inputs(node: Mapping[str, Any]) -> list[Output]:
    return [(one[0], one[1]) for one in node["inputs"]]


def _factor(node: Mapping[str, Any]) -> float | None:
    """The number that an operation multiplies values by; None if it does anything else."""
    kind = node["op"]
    if kind in _SAME or kind in _SHAPING:
        return 1.0
    if kind not in _TIMES and kind not in _DIVIDED:
        return None
    number = abs(float(node["attrs"]["scalar"]))
    if kind in _DIVIDED:
        return 1 / number if number else None
    return number


def _without(shape: _Shape, node: Mapping[str, Any]) -> _Shape | None:
    """The shape of what has been taken together along axes; None if the samples have, but for their mean."""
    told = node.get("attrs") or {}
    axes = {int(one) for one in re.findall(r"-?\d+", told.get("axis", "-1" if node["op"] in _PICKING else ""))}
    known = shape.axes
    if known is not None:
        axes = {axis % known for axis in axes}
        if told.get("exclude") in ("True", "1"):
            axes = {*range(known)} - axes
        if axes and 0 not in axes:
            return _Shape(shape.samples, known if told.get("keepdims") in ("True", "1") else known - len(axes))
    # Which axis that is, or whether it is the first one, makes no difference to a mean.
    return _Shape(shape.samples, None) if node["op"] in _MEANS else None
