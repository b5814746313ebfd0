"""The link between the value a backward pass starts from and a loss that has been saved.

A script may scale, weight or average a loss before it differentiates it. The result is linked to the loss it was made
from by walking back through operations that only rescale or reshape one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Node = TypeVar("Node")

FARTHEST = 6


def comes_from(start: Node | None, is_loss: Callable[[Node], bool], rescaled: Callable[[Node], Node | None]) -> bool:
    """Whether a loss is reached from a node of the graph in at most ``FARTHEST`` operations.

    Args:
        start: the node that made the value; None if there is no graph.
        is_loss: tells of a node whether it made a loss that has been saved.
        rescaled: gives the node whose value this one only rescales or reshapes; None where it does anything else.
    """
    node = start
    for _ in range(FARTHEST + 1):
        if node is None:
            return False
        if is_loss(node):
            return True
        node = rescaled(node)
    return False
