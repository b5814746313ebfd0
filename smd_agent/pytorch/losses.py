"""Recognises the loss a backward pass starts from among the losses that loss modules have returned.

A script may scale, weight or average a loss before it calls ``backward``. The result is linked to the loss it was made
from by walking back through operations that only rescale or reshape one value.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

_FARTHEST = 6
_RESCALING = {
    "AliasBackward0",
    "CloneBackward0",
    "DivBackward0",
    "MeanBackward0",
    "MulBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SumBackward0",
    "ToCopyBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
}


class KnownLosses:
    """The losses that were saved in the current step, by the graph node that made them, and in evaluation themselves.

    Nodes are known by their numbers: a reference would keep the graph, and with it the model, alive.
    """

    def __init__(self) -> None:
        self._nodes: set[tuple[str, int]] = set()
        self._without_graph: dict[int, weakref.ref[torch.Tensor]] = {}

    def add(self, loss: torch.Tensor) -> None:
        """Remember a loss that has been saved."""
        if loss.grad_fn is not None:
            self._nodes.add(_identity(loss.grad_fn))
        else:
            self._without_graph[id(loss)] = weakref.ref(loss)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a remembered loss, or one rescaled."""
        node = tensor.grad_fn
        if node is None:
            known = self._without_graph.get(id(tensor))
            return known is not None and known() is tensor
        for _ in range(_FARTHEST + 1):
            if node is None:
                return False
            if _identity(node) in self._nodes:
                return True
            inputs = [source for source, _ in node.next_functions if source is not None]
            if node.name() not in _RESCALING or len(inputs) != 1:
                return False
            node = inputs[0]
        return False


def _identity(node: Any) -> tuple[str, int]:
    return node.name(), node._sequence_nr()
