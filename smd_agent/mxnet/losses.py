"""Recognises the loss a backward pass starts from among the losses that loss blocks have returned.

A script may scale, weight or average a loss before it calls ``backward``. The result is linked to the loss it was made
from by walking back through operations that only rescale or reshape one value, in the graph that autograd recorded.
"""

from __future__ import annotations

import json
from typing import Any

from mxnet import autograd
from mxnet.base import MXNetError
from mxnet.ndarray import NDArray

_FARTHEST = 6
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
        """Whether an array is a remembered loss, or one rescaled. To be asked before ``backward`` frees the graph."""
        if id(array) in self._ids:
            return True
        nodes, head = _recorded(array)
        if head is None:
            return False
        known = {end for loss in self._ids.values() for end in _ends(loss)}
        position, output = head
        for _ in range(_FARTHEST + 1):
            node = nodes[position]
            if (node["name"], output) in known:
                return True
            if node["op"] not in _RESCALING or len(node["inputs"]) != 1:
                return False
            position, output = node["inputs"][0][:2]
        return False


def _ends(loss: NDArray) -> list[tuple[str, int]]:
    nodes, head = _recorded(loss)
    return [] if head is None else [(nodes[head[0]]["name"], head[1])]


def _recorded(array: NDArray) -> tuple[list[dict[str, Any]], tuple[int, int] | None]:
    # Names of recorded operations are numbered over the whole process, so they identify an operation.
    try:
        graph = json.loads(autograd.get_symbol(array).tojson())
    except (MXNetError, ValueError):
        # Not recorded, freed, or made by something (a custom Function) that has no such form.
        return [], None
    return graph["nodes"], (graph["heads"][0][0], graph["heads"][0][1])
