"""Inputs and outputs of the blocks inside of a hybridized block, whose graph runs as one operation.

While a block is traced, which happens once, the inner blocks are called with symbols; what goes in and comes out of
each is noted. In a step that saves some of it, the block runs through a second operation, made of the same graph, that
shows each result as it is made. The user's own operation is not touched: a monitor can never be taken off one again.
The second one plans its memory anew each time, because MXNet shows only a few of the results of a static plan; it
computes the same values, and takes the same random numbers.
"""

from __future__ import annotations

import ctypes
import functools
import json
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import mxnet
from mxnet.base import NDArrayHandle, py_str
from mxnet.gluon import Block, HybridBlock
from mxnet.gluon.loss import Loss as LossBlock
from mxnet.ndarray import CachedOp, NDArray
from mxnet.symbol import Symbol

from smd_agent import guard
from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.plain_access import attribute, elements_of, is_a
from smd_agent.framework.replaced_functions import Patch, Until, is_replaced, replace
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet.arrays import arrays_in, copied, is_symbolic
from smd_agent.mxnet.block_calls import watch
from smd_agent.mxnet.plain_access import name_of

Save = Callable[[list[str], NDArray], None]


class InnerCall(NamedTuple):
    """One call of an inner block while its outer one was traced."""

    name: str
    inputs: list[Symbol]
    outputs: list[Symbol]
    is_loss: bool
    kind: type[Block]


class Trace(NamedTuple):
    """The calls seen while this graph was made."""

    graph: Any
    calls: list[InnerCall]


class NodeOutput(NamedTuple):
    """One output of one operation in a graph."""

    node: int
    output: int


# A variable, which is an outer input or a parameter, is known by its name.
Place = NodeOutput | str

_traces: WeakIdentityMap[HybridBlock, Trace] = WeakIdentityMap()


def watch_tracing() -> None:
    """Note from now on what happens when a block is traced. Costs nothing in a step: a graph is made once."""
    if hasattr(HybridBlock, "_get_graph") and not is_replaced(HybridBlock, "_get_graph"):
        replace(HybridBlock, "_get_graph", _noting, why="a traced graph shows where the inner blocks are in it")


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_graph(block: HybridBlock, *args: Any) -> Any:
        if graph_of(block):
            return original(block, *args)
        calls: list[InnerCall] = []
        leave = watch(functools.partial(_note, calls))
        try:
            result = original(block, *args)
        finally:
            leave()
        _traces.set(block, Trace(graph_of(block), calls))
        return result

    return get_graph


@unseen
def _note(calls: list[InnerCall], original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
    result = original(block, *args, **kwargs)
    if is_symbolic(args):
        _note_symbols(calls, block, args, result)
    return result


@LAYERS.fence("looking at a block that is traced")
def _note_symbols(calls: list[InnerCall], block: Block, args: tuple[Any, ...], result: Any) -> None:
    inputs, outputs = list(_symbols_in(args)), list(_symbols_in(result))
    calls.append(InnerCall(name_of(block), inputs, outputs, is_a(block, LossBlock), type(block)))


class GraphTap:
    """A hybridized block's second operation, and what is to be saved of what it shows."""

    def __init__(self, block: HybridBlock, trace: Trace | None) -> None:
        self.original = operation_of(block)
        data, out = graph = graph_of(block)
        calls = trace.calls if trace is not None and trace.graph is graph else []
        if trace is None or trace.graph is not graph:
            name = name_of(block)
            line = f"inputs and outputs of the blocks inside of {name} are not saved: its graph was not made here"
            guard.say_once(("no trace", name), line)
        self._data = [symbol.name for symbol in data]
        self._graph = _Graph(out, calls)
        self._operation: Any = None
        self._patch: Patch | None = None
        self._results: _TapResults | None = None
        self._flags = [pair for pair in attribute(block, "_flags") if pair[0] not in ("static_alloc", "static_shape")]

    def names(self, next_number: Callable[[str], int], wants: Callable[[str], bool]) -> dict[Place, list[str]]:
        """Under which names the results and the outer inputs are wanted.

        Args:
            next_number: numbers the tensors of a base name over the step.
            wants: tells whether the step saves a tensor of this name.
        """
        names: dict[Place, list[str]] = {}
        for kind, places in self._graph.calls:
            for place in places:
                name = f"{kind}_{next_number(kind)}"
                if wants(name):
                    names.setdefault(place, []).append(name)
        return names

    def install(self, block: HybridBlock, args: tuple[Any, ...], names: Mapping[Place, list[str]], save: Save) -> None:
        """Have the next call of the block show the wanted results."""
        wanted = {place: found for place, found in names.items() if isinstance(place, NodeOutput)}
        self._results = _TapResults(self._graph, wanted, save)
        for name, array in zip(self._data, arrays_in(args), strict=False):
            if name in names:
                save(names[name], array)
        if self._operation is None:
            self._operation = self._make(block)
        # What the block holds stays as it is: the program may look at it, or copy it, in the call.
        why = "the operation of a hybridized block shows what is inside of it"
        self._patch = Patch(CachedOp, "__call__", self._instead, why=why, until=Until.CALL_RETURNS)

    def _instead(self, original: Callable[..., Any]) -> Callable[..., Any]:
        own, shown = self.original, self._operation

        def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
            return original(shown if operation is own else operation, *args, **kwargs)

        return call

    def losses_in(self, result: Any) -> list[NDArray]:
        """Those of the outer outputs that an inner loss block has made."""
        arrays = list(arrays_in(result))
        return [arrays[i] for i in self._graph.losses if i < len(arrays)]

    def remove(self, block: HybridBlock) -> None:
        """Have the block's own operation run again."""
        patch, self._patch = self._patch, None
        if patch is not None:
            patch.remove()
        results, self._results = self._results, None
        if results is not None:
            results.settle(name_of(block))

    def _make(self, block: HybridBlock) -> Any:
        places: dict[str, list[int]] = {"data_indices": [], "param_indices": []}
        for i, (is_data, _) in enumerate(attribute(block, "_cached_op_args")):
            places["data_indices" if is_data else "param_indices"].append(i)
        operation = CachedOp(graph_of(block)[1], [*places.items(), *self._flags])
        # The operation must not keep this object alive through its callback, nor this object's block.
        this = weakref.ref(self)

        @LAYERS.fence("saving what is inside of a hybridized block")
        def show(name: Any, operator: Any, handle: Any) -> None:
            # The handle is ours to free, which the array does when it goes.
            array = _as_array(handle)
            tap = this()
            if tap is not None and tap._results is not None:
                tap._results.take(py_str(name), array)

        operation._register_op_hook(show, False)
        return operation


class _Graph:
    """Names and order of the operations of a traced graph, and where the inner blocks' inputs and outputs are in it."""

    def __init__(self, out: Symbol, calls: list[InnerCall]) -> None:
        symbols = [symbol for call in calls for symbol in (*call.inputs, *call.outputs)]
        # One group, so that all their nodes are numbered alike.
        group = mxnet.sym.Group([out, *symbols], type(out))
        graph = json.loads(group.tojson(remove_amp_cast=False))
        nodes = graph["nodes"]
        outer = len(out.list_outputs())
        heads = iter(graph["heads"][outer:])
        losses: set[Place] = set()
        self.calls: list[tuple[str, list[Place]]] = []
        for call in calls:
            for kind, parts in (("input", call.inputs), ("output", call.outputs)):
                places: list[Place] = []
                for _ in parts:
                    node, output = next(heads)[:2]
                    places.append(nodes[node]["name"] if nodes[node]["op"] == "null" else NodeOutput(node, output))
                self.calls.append((f"{call.name}_{kind}", places))
            if call.is_loss:
                losses.update(places)
        self.losses = [i for i, head in enumerate(graph["heads"][:outer]) if NodeOutput(*head[:2]) in losses]
        self.operations: dict[str, list[int]] = {}
        for i, node in enumerate(nodes):
            if node["op"] != "null":
                self.operations.setdefault(node["name"], []).append(i)

    def operation(self, shown: str) -> str | None:
        """The operation whose output is shown under this name, ``<operation>_<output>``."""
        name = shown
        while name:
            name = name.rpartition("_")[0]
            if name in self.operations:
                return name
        return None


class _TapResults:
    """The results that a tap shows in one call, and the names they are wanted under."""

    def __init__(self, graph: _Graph, names: dict[NodeOutput, list[str]], save: Save) -> None:
        self._graph = graph
        self._names = names
        self._save = save
        self._seen: Counter[str] = Counter()
        self._outputs: dict[str, list[str]] = {}
        self._waiting: dict[str, list[tuple[list[str], Any]]] = {}
        self._missing = set(names)

    @LAYERS.fence("saving what is inside of a hybridized block")
    def take(self, shown: str, array: NDArray) -> None:
        """One result, in the order in which they are made."""
        operation = self._graph.operation(shown)
        if operation is None:
            return
        outputs = self._outputs.setdefault(operation, [])
        if shown not in outputs:
            outputs.append(shown)
        nodes = self._graph.operations[operation]
        turn = self._seen[shown]
        self._seen[shown] += 1
        if turn >= len(nodes):
            return
        place = NodeOutput(nodes[turn], outputs.index(shown))
        names = self._names.get(place)
        if names is None:
            return
        self._missing.discard(place)
        if len(nodes) == 1:
            self._save(names, array)
        else:
            # Several operations have this name; whether each was shown is known at the end. The memory is used again.
            self._waiting.setdefault(shown, []).append((names, copied(array)))

    @LAYERS.fence("saving what is inside of a hybridized block")
    def settle(self, block: str) -> None:
        """Save what had to wait; say what was not shown."""
        lost = len(self._missing)
        for shown, found in self._waiting.items():
            operation = self._graph.operation(shown)
            if operation is not None and self._seen[shown] == len(self._graph.operations[operation]):
                for names, values in found:
                    self._save(names, values)
            else:
                lost += len(found)
        if lost:
            line = f"{lost} of the inputs and outputs inside of {block} are not saved: MXNet merged operations"
            guard.say_once(("merged", block), line)


def trace_of(block: HybridBlock) -> Trace | None:
    """The notes from when this block was traced."""
    return _traces.get(block)


def graph_of(block: Block) -> Any:
    """Inputs and graph of a block that has been traced; empty of others."""
    return attribute(block, "_cached_graph", ())


def operation_of(block: Block) -> Any:
    """The operation that a hybridized block runs as; None as long as it has none."""
    return attribute(block, "_cached_op")


def is_active(block: Block) -> bool:
    """True if a block runs as one operation."""
    return bool(attribute(block, "_active", False))


def _as_array(handle: Any) -> NDArray:
    return NDArray(ctypes.cast(handle, NDArrayHandle), writable=False)


def _symbols_in(value: Any) -> Iterator[Symbol]:
    if is_a(value, Symbol):
        if len(value.list_outputs()) == 1:
            yield value
        else:
            yield from value
    elif is_a(value, (list, tuple)):
        for part in elements_of(value):
            yield from _symbols_in(part)
