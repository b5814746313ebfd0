"""Losses of a step in the graph of autograd, by which the loss that a backward pass starts from is recognised.

See ``framework.loss_links``.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mxnet import autograd
from mxnet.base import MXNetError
from mxnet.ndarray import NDArray
from mxnet.symbol import Symbol

from smd_agent.framework.loss_links import comes_from

Output = tuple[int, int]
"""Position of an operation in a recorded graph, and which of its outputs."""


class Graph(NamedTuple):
    """A graph that autograd has recorded, or that of a hybridized block.

    nodes: its operations and variables, as MXNet writes them.
    head: the output that it is the graph of.
    """

    nodes: list[dict[str, Any]]
    head: Output

    @property
    def made_by(self) -> tuple[str, int]:
        """The name of the operation that has made the output, and which of its outputs that is."""
        return self.nodes[self.head[0]]["name"], self.head[1]


_RESCALING = {
    "Cast",
    "Flatten",
    "Reshape",
    "_copy",
    "_div_scalar",
    "_mul_scalar",
    "_npi_mean",
    "_npi_multiply_scalar",
    "_npi_true_divide_scalar",
    "_np_copy",
    "_np_reshape",
    "_np_squeeze",
    "_np_sum",
    "_npx_reshape",
    "amp_cast",
    "expand_dims",
    "mean",
    "squeeze",
    "sum",
}


class KnownLosses:
    """The losses that were saved in the current step, by the names autograd gave to the operations that made them."""

    def __init__(self) -> None:
        self._ids: dict[int, NDArray] = {}

    def add(self, loss: NDArray) -> None:
        """Remember a loss that has been saved."""
        # The array is kept, so that its id stays its own. This is the usual way to ``backward``.
        self._ids[id(loss)] = loss

    def knows(self, array: NDArray) -> bool:
        """True if an array is a remembered loss, or one rescaled. To be asked before ``backward`` frees the graph."""
        if id(array) in self._ids:
            return True
        graph = recorded(array)
        if graph is None:
            return False
        nodes = graph.nodes
        known = {found.made_by for found in map(recorded, self._ids.values()) if found is not None}

        def rescaled(output: Output) -> Output | None:
            node = nodes[output[0]]
            if node["op"] not in _RESCALING or len(node["inputs"]) != 1:
                return None
            return node["inputs"][0][0], node["inputs"][0][1]

        return comes_from(graph.head, lambda output: (nodes[output[0]]["name"], output[1]) in known, rescaled)


def is_same_loss(head: NDArray, result: NDArray) -> bool:
    """True if what a backward pass starts from is this result, or that rescaled."""
    known = KnownLosses()
    known.add(result)
    return known.knows(head)


def recorded(array: NDArray) -> Graph | None:
    """The graph behind an array; None if there is none, as after ``backward`` has freed it."""
    # Names of recorded operations are numbered over the whole process, so they identify an operation.
    try:
        return graph_of_symbol(autograd.get_symbol(array))
    except (MXNetError, ValueError):
        # Not recorded, freed, or made by something (a custom Function) that has no such form.
        return None


def graph_of_symbol(symbol: Symbol, place: int = 0) -> Graph:
    """The graph of one of the outputs of a symbol."""
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    return Graph(graph["nodes"], (graph["heads"][place][0], graph["heads"][place][1]))
