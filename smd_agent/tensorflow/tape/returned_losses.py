"""Losses that a compiled function returns: they are known without another run, and wherever it is called.

Where a value comes from is read in the definition of the function, through the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager import context

from smd_agent.framework.plain_access import is_a
from smd_agent.tensorflow.graph.function_rewrite import CALLS
from smd_agent.tensorflow.types import FunctionDef, NodeDef

Refs = Callable[[str], Sequence[str]]
"""Gives the values that are wanted of a function by its name, as ``Output.ref`` has them."""


class _Value(NamedTuple):
    """A value inside a function: the calls that lead to where it is computed, by their nodes, and its name there."""

    path: tuple[str, ...]
    ref: str


class ReturnedLosses:
    """The places of losses among what a function returns, or its variant adds to that.

    Args:
        definition: of the function.
        losses: those of a function, and of each one that it calls.
    """

    def __init__(self, definition: FunctionDef, losses: Refs) -> None:
        origins = _Origins()
        names = [argument.name for argument in definition.signature.output_arg]
        returned = [origins.of(definition, definition.ret[name]) for name in names]
        wanted = [*origins.wanted(definition, losses)]
        self._count = len(names)
        self._places = [returned.index(value) for value in dict.fromkeys(wanted)] if {*wanted} <= {*returned} else []
        # A tape may be asked for the gradients of each variable by itself.
        self._first = [number for number, value in enumerate(wanted) if wanted.index(value) == number]

    def of(self, result: Any, further: Sequence[Any] = ()) -> list[Any] | None:
        """All losses, each once; None if one of them is not known.

        Args:
            result: what the function has returned.
            further: all losses in their order, if its variant has run.
        """
        if further:
            return [further[number] for number in self._first]
        if not self._places:
            return None
        # As TensorFlow takes it apart.
        flat = [result] if is_a(result, tf.Tensor) else tf.nest.flatten(result, expand_composites=True)
        found = [one for one in flat if one is not None]
        return [found[place] for place in self._places] if len(found) == self._count else None


class _Origins:
    """The places where values inside a function, and the functions that it calls, are computed."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, NodeDef]] = {}
        self._called: dict[str, FunctionDef | None] = {}

    def of(self, definition: FunctionDef, ref: str, path: tuple[str, ...] = ()) -> _Value:
        """The value behind one that is handed on as it is."""
        nodes = self._nodes_of(definition)
        while (node := nodes.get(ref.partition(":")[0])) is not None:
            inner = self._called_by(node)
            if inner is not None:
                output = inner.signature.output_arg[int(ref.rpartition(":")[2])].name
                return self.of(inner, inner.ret[output], (*path, node.name))
            if node.op != "Identity":
                break
            ref = node.input[0]
        return _Value(path, ref)

    def wanted(self, definition: FunctionDef, losses: Refs, path: tuple[str, ...] = ()) -> Iterator[_Value]:
        """The losses of a function, and then those of the functions that it calls."""
        for ref in losses(definition.signature.name):
            yield self.of(definition, ref, path)
        for node in definition.node_def:
            inner = self._called_by(node)
            if inner is not None:
                yield from self.wanted(inner, losses, (*path, node.name))

    def _nodes_of(self, definition: FunctionDef) -> dict[str, NodeDef]:
        name = definition.signature.name
        if name not in self._nodes:
            self._nodes[name] = {node.name: node for node in definition.node_def}
        return self._nodes[name]

    def _called_by(self, node: NodeDef) -> FunctionDef | None:
        if node.op not in CALLS:
            return None
        name = node.attr["f"].func.name
        if name not in self._called:
            library = context.context()
            self._called[name] = library.get_function_def(name) if library.has_function(name) else None
        return self._called[name]
