"""Plain numbers of Python that a ``tf.function`` was traced with: they are constants of its graph from then on.

One counts if the function's source computes with it, a constant of its value was made at that line, and the loss or an
update of a trained variable is computed from that. What it is by then is looked at in each step that is saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from smd_agent.framework.plain_access import attribute
from smd_agent.framework.plain_reads import Read, Use, uses
from smd_agent.framework.program_lines import line_at
from smd_agent.interpreter.callers import callers, first_argument
from smd_agent.tensorflow.graph.loss_graph import inner_variable
from smd_agent.tensorflow.types import Graph, Variable

# Names that are followed in one function.
_MOST = 8
_UPDATES = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")


class BakedValue(NamedTuple):
    """A number that a function was traced with.

    read: the name that it was read by, and its value then.
    line: of the program, as text, where it goes into what is computed.
    """

    read: Read
    line: str


def baked_values(graph: Graph, losses: Iterable[str], trained: Iterable[Variable]) -> list[BakedValue]:
    """The numbers that a function has just been traced with.

    Args:
        graph: of the function.
        losses: names of the operations that give what its tapes differentiate.
        trained: the variables that they have found gradients for.
    """
    function, own = _traced_by(graph)
    found = [] if function is None else [use for use in uses(function, own, "tensorflow") if np.isfinite(use.value)]
    if not found:
        return []
    constants = [*_constants(graph)]
    ends = {*losses}
    handles = {id(attribute(inner_variable(variable), "_handle")) for variable in trained}
    function_graph: Any = graph
    inside = {id(inner) for outer, inner in function_graph.captures if id(outer) in handles}
    baked: dict[str, BakedValue] = {}
    for use in found:
        made = (operation for operation, value in constants if _is(value, use.value) and _is_at(operation, use))
        if any(_reaches(operation, ends, inside) for operation in made):
            for read in use.reads:
                baked.setdefault(read.name, BakedValue(read, line_at(use.file, use.first)))
    return [*baked.values()][:_MOST]


def _traced_by(graph: Any) -> tuple[FunctionType | None, object]:
    """The function of the program that is being traced, and the object whose method it is."""
    for frame in callers():
        traced = attribute(first_argument(frame), "_python_function")
        if traced is None:
            continue
        function = inspect.unwrap(traced)
        own = None
        if type(function) is MethodType:
            own = function.__self__
            # A method that is decorated is bound to what holds the object weakly.
            held = attribute(own, "weakrefself_target__")
            own = own if held is None else held()
            function = inspect.unwrap(function.__func__)
        if type(function) is FunctionType and function.__name__ == graph.name:
            return function, own
        return None, None
    return None, None


def _constants(graph: Graph) -> Iterator[tuple[Any, Any]]:
    """The constants of a graph that are one number with a fraction, and their values."""
    for operation in graph.get_operations():
        made: Any = operation.outputs[0] if operation.type == "Const" else None
        if made is not None and made.dtype.is_floating and made.shape.rank == 0:
            yield operation, tf.make_ndarray(operation.get_attr("value"))


def _is(constant: Any, value: float) -> bool:
    return bool(constant == np.asarray(value).astype(constant.dtype))


def _is_at(operation: Any, use: Use) -> bool:
    """True if the operation was made where a number is used, in the lines of the program's source."""
    return any(one.filename == use.file and use.first <= one.lineno <= use.last for one in operation.traceback)


def _reaches(start: Any, ends: set[str], trained: set[int]) -> bool:
    """True if a loss, or an update of a trained variable, is computed from what an operation gives."""
    waiting, seen = [start], {id(start)}
    while waiting:
        operation = waiting.pop()
        is_update = operation.type.startswith(_UPDATES) and id(operation.inputs[0]) in trained
        if operation.name in ends or is_update:
            return True
        for consumer in (one for output in operation.outputs for one in output.consumers()):
            if id(consumer) not in seen:
                seen.add(id(consumer))
                waiting.append(consumer)
    return False
