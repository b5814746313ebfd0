"""Numbers by which two steps are compared: of what each operation of a loss has kept for its gradient, of gradients."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import torch

from smd_agent.pytorch.arrays import PLAIN_CLASSES, has_memory, tensors_in
from smd_agent.pytorch.blame.graph import Graph, saved_by
from smd_agent.pytorch.blame.replay import RUNNING
from smd_agent.pytorch.bundles.raw_bytes import bytes_of, can_be_kept
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import apart

_MOST = 2000
_MOST_BYTES = 256 << 20


@apart
def graph_of(roots: Any) -> Graph:
    """The graph of a backward pass that begins from these tensors."""
    return Graph(one for one in tensors_in(roots) if type(one) in PLAIN_CLASSES)


@apart
def operations_of(graph: Graph) -> list[list[Any]]:
    """Name and number of each operation, in the order of the forward; of a large graph the first ones."""
    found: list[list[Any]] = []
    left = _MOST_BYTES
    for node in [*graph.nodes.values()][:_MOST]:
        number = 0
        for tensor in _kept_by(node):
            left -= tensor.nbytes
            if left >= 0:
                number = zlib.crc32(bytes_of(tensor), number)
        found.append([node.name(), number])
    return found


@apart
def gradients_of(models: Iterable[TrackedModule]) -> dict[str, torch.Tensor]:
    """The gradients that parameters of models have, by the names of these."""
    pairs = (pair for tracked in models for pair in tracked.parameters())
    return {name: one.grad for name, one in pairs if one.is_leaf and one.grad is not None}


@apart
def numbers_of(gradients: dict[str, torch.Tensor]) -> list[list[Any]]:
    """Name and number of each gradient that is a plain tensor; of many the first ones."""
    found: list[list[Any]] = []
    left = _MOST_BYTES
    for name, one in gradients.items():
        left -= one.nbytes
        if type(one) in PLAIN_CLASSES and can_be_kept(one) and left >= 0:
            found.append([name, zlib.crc32(bytes_of(one))])
    return found


def _kept_by(node: Any) -> list[torch.Tensor]:
    try:
        kept = [one for name, one in saved_by(node) if name not in RUNNING]
    except RuntimeError:
        # Something has been changed since.
        return []
    # Weights are the same for both, or are not there any more.
    return [one for one in kept if has_memory(one) and type(one) is torch.Tensor]
