"""Losses of a step in the graph of autograd, by which the loss that a backward pass starts from is recognised.

See ``framework.loss_links``.
"""

from __future__ import annotations

import json
from typing import Any

from mxnet import autograd
from mxnet.base import MXNetError
from mxnet.ndarray import NDArray

from smd_agent.framework.loss_links import comes_from

Output = tuple[int, int]
"""Position of an operation in a recorded graph, and which of its outputs."""

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
        nodes, head = _recorded(array)
        if head is None:
            return False
        known = {output for loss in self._ids.values() for output in _made_by(loss)}

        def rescaled(output: Output) -> Output | None:
            node = nodes[output[0]]
            if node["op"] not in _RESCALING or len(node["inputs"]) != 1:
                return None
            return node["inputs"][0][0], node["inputs"][0][1]

        return comes_from(head, lambda output: (nodes[output[0]]["name"], output[1]) in known, rescaled)


def is_same_loss(head: NDArray, result: NDArray) -> bool:
    """True if what a backward pass starts from is this result, or that rescaled."""
    known = KnownLosses()
    known.add(result)
    return known.knows(head)


def _made_by(loss: NDArray) -> list[tuple[str, int]]:
    nodes, head = _recorded(loss)
    return [] if head is None else [(nodes[head[0]]["name"], head[1])]


def _recorded(array: NDArray) -> tuple[list[dict[str, Any]], Output | None]:
    # Names of recorded operations are numbered over the whole process, so they identify an operation.
    try:
        graph = json.loads(autograd.get_symbol(array).tojson())
    except (MXNetError, ValueError):
        # Not recorded, freed, or made by something (a custom Function) that has no such form.
        return [], None
    return graph["nodes"], (graph["heads"][0][0], graph["heads"][0][1])
