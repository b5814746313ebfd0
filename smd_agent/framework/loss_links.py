"""The link between the value a backward pass starts from and a loss that is known.

A script may scale, weight or average a loss before it differentiates it. The result is linked to the loss it was made
from by walking back through operations that only rescale or reshape one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Node = TypeVar("Node")
Found = TypeVar("Found")

FARTHEST = 6


def origin(
    start: Node | None, find: Callable[[Node], Found | None], rescaled: Callable[[Node], Node | None]
) -> Found | None:
    """The result of ``find`` for the first node, at most ``FARTHEST`` operations before a value, that has one.

    Args:
        start: the node that made the value; None if there is no graph.
        find: what is known of a node.
        rescaled: gives the node whose value this one only rescales or reshapes; None where it does anything else.
    """
    node = start
    for _ in range(FARTHEST + 1):
        if node is None:
            return None
        found = find(node)
        if found is not None:
            return found
        node = rescaled(node)
    return None


def comes_from(start: Node | None, is_loss: Callable[[Node], bool], rescaled: Callable[[Node], Node | None]) -> bool:
    """True if ``origin`` finds a node that made a loss which has been saved."""
    return origin(start, lambda node: is_loss(node) or None, rescaled) is not None
