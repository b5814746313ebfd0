"""The graph of a backward pass that is about to begin: what its nodes have kept, in the order of the forward.

Nothing of the program's runs: what hooks have packed, as activation checkpoints do, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from smd_agent.framework.plain_access import is_a
from smd_agent.pytorch.arrays import PLAIN_CLASSES

_RAW = "_raw_saved_"
# What ends a graph at a parameter has this number.
_LAST = 2**63
_MOST = 200_000
_ABSENT = object()


class Graph:
    """The nodes behind tensors.

    Attributes:
        nodes: those that operations have made, by their numbers, which go up in the order of the forward.
        leaves: the tensors that it ends at.
        is_compiled: whether some of it was made by compiled code.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self.nodes: dict[int, Any] = {}
        self.leaves: list[torch.Tensor] = []
        waiting: list[Any] = [tensor.grad_fn for tensor in tensors]
        seen: set[Any] = set()
        while waiting and len(seen) < _MOST:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            number = node._sequence_nr()
            variable = getattr(node, "variable", None) if number >= _LAST else None
            if is_a(variable, torch.Tensor):
                self.leaves.append(variable)
            elif number < _LAST:
                self.nodes[number] = node
            waiting.extend(source for source, _ in node.next_functions)
        self.nodes = dict(sorted(self.nodes.items()))
        self.is_compiled = any(node.name().startswith("CompiledFunction") for node in self.nodes.values())


def saved_by(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a node has kept for its backward, by the names of its operation's arguments and results.

    Raises:
        RuntimeError: one has been changed since.
    """
    for name in dir(type(node)):
        if name.startswith(_RAW):
            raw = getattr(node, name)
            found = raw if type(raw) in (list, tuple) else [raw]
            if any(getattr(one, "unpack_hook", _ABSENT) is not None for one in found):
                continue
            # The program's own functions have none of the second name.
            kept: Any = getattr(node, name.replace("_raw", "", 1), None)
            for one in kept if type(kept) in (list, tuple) else [kept]:
                if type(one) in PLAIN_CLASSES:
                    yield name.removeprefix(_RAW), one


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two tensors have the same values, NaN among them."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    return bool(((one == other) | ((one != one) & (other != other))).all())
