"""Operations behind what a loss is given, by the graphs of autograd and of hybridized blocks, while it is recorded.

An operation that only gives another shape or dtype to values is passed by.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mxnet.gluon import Block
from mxnet.ndarray import NDArray

from smd_agent.framework.target_reach import RANGES, Range
from smd_agent.mxnet.arrays import arrays_in, plain
from smd_agent.mxnet.hybridized import graph_of, is_active, operation_of
from smd_agent.mxnet.loss_graph import Graph, Output, graph_of_symbol, recorded

_SAME_SHAPE = {"Cast", "_copy", "_copyto", "_np_copy", "amp_cast"}
_SAME_VALUES = {
    *_SAME_SHAPE,
    *("Flatten", "Reshape", "SwapAxis", "_np_reshape", "_np_squeeze", "_np_transpose", "_npx_reshape", "expand_dims"),
    *("reshape_like", "squeeze", "transpose"),
}
# What gives a part of them, too.
_SOME_VALUES = {
    *_SAME_VALUES,
    *("SliceChannel", "_split_v2", "gather_nd", "pick", "slice", "slice_axis", "slice_like", "take"),
}
_BLOCK = "_CachedOp"
# Variables, and operations of the program's own.
_OPAQUE = {"null", "Custom", "_CustomFunction"}
_NAMES = {"softrelu": "softplus"}
_FARTHEST = 32
# Results of hybridized blocks that are kept to find the one that a loss is given.
_KEPT = 8


class Operation(NamedTuple):
    """An operation of a graph: its name and what it was told."""

    name: str
    told: Mapping[str, str]

    @property
    def activation(self) -> str:
        """The name of an activation as the table of ranges has it, in small letters."""
        name = self.told.get("act_type", "") if self.name == "Activation" else self.name
        name = name.removeprefix("_npx_").removeprefix("_npi_").replace("_", "").lower()
        return _NAMES.get(name, name)

    @property
    def within(self) -> Range | None:
        """The range of what it returns; None if it has none."""
        if self.name == "clip":
            return Range(float(self.told["a_min"]), float(self.told["a_max"]))
        return RANGES.get(self.activation)


class Origin(NamedTuple):
    """The operations behind an array, the nearest first, as far as they give its values on; then the one before them.

    None of what is not known.
    """

    operations: tuple[Operation, ...]

    def behind(self, names: Iterable[str]) -> Operation | None:
        """The first operation that is none of these."""
        return next((one for one in self.operations if one.name not in names), None)

    def has_been_through(self, activation: str) -> bool | None:
        """True if an activation has returned the values; None if that is not known."""
        found = self.behind(_SAME_VALUES)
        return None if found is None else found.activation == activation

    def softmax_axis(self) -> int | None:
        """The axis of the softmax that has returned the array as it is, but for its dtype."""
        found = self.behind(_SAME_SHAPE)
        return int(found.told.get("axis", -1)) if found is not None and found.activation == "softmax" else None

    def within(self) -> Range | None:
        """The range of the activation that has returned the values, or more of them; None if there is none."""
        found = self.behind(_SOME_VALUES)
        return None if found is None else found.within


class Origins:
    """The graphs behind the arrays of one saved step."""

    def __init__(self) -> None:
        # What hybridized blocks have returned, and which of their outputs it is; the latest last.
        self._returned: deque[tuple[NDArray, weakref.ref[Block], int]] = deque(maxlen=_KEPT)

    def add(self, block: Block, outputs: Any) -> None:
        """A block has returned, while autograd records; of one that runs as one operation its graph is known."""
        if is_active(block) and operation_of(block) is not None:
            self._returned.extend((array, weakref.ref(block), place) for place, array in enumerate(arrays_in(outputs)))

    def forget(self) -> None:
        """Let go of all arrays."""
        self._returned.clear()

    def of(self, array: NDArray) -> Origin | None:
        """The operations behind an array; None if autograd has not recorded it."""
        for known, block, place in self._returned:
            if known is array:
                return Origin((*_inside(block(), place),))
        graph = recorded(plain(array))
        return None if graph is None else Origin((*self._walk(graph),))

    def _walk(self, graph: Graph) -> Iterator[Operation]:
        for operation, output in _operations(graph):
            if operation.name == _BLOCK:
                yield from self._in_block((graph.nodes[output[0]]["name"], output[1]))
            else:
                yield operation

    def _in_block(self, made: tuple[str, int]) -> Iterator[Operation]:
        """The operations inside of the hybridized block that has made this."""
        for array, block, place in reversed(self._returned):
            graph = recorded(plain(array))
            if graph is not None and graph.made_by == made:
                yield from _inside(block(), place)
                return


def _inside(block: Block | None, place: int) -> Iterator[Operation]:
    graph = () if block is None else graph_of(block)
    if graph:
        yield from (operation for operation, _ in _operations(graph_of_symbol(graph[1], place)))


def _operations(graph: Graph) -> Iterator[tuple[Operation, Output]]:
    """The operations from an output of a graph on, by their first inputs, to the first one that gives other values."""
    output: Output = graph.head
    for _ in range(_FARTHEST):
        node = graph.nodes[output[0]]
        if node["op"] in _OPAQUE:
            return
        yield Operation(node["op"], node.get("attrs") or {}), output
        if node["op"] not in _SOME_VALUES:
            return
        output = node["inputs"][0][0], node["inputs"][0][1]
