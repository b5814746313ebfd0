"""The axis of the classes in what a loss is given, as far as views have brought it there, which move no number.

``usage/loss/<function>_<i>/classes_mixed``, of losses of classes in training: 1 if a view has cut the scores anew, so
that what the loss takes for the scores of one element are scores of several; else 0. It is told from the graph of
autograd, by the sizes before the views that the loss's input comes from:

- (batch, length, classes), viewed as (batch, classes, length);
- (batch, classes, height, width) of a convolution, viewed as (batch * height * width, classes).

A view that the classes come out of as they went in, an axis of one element, and axes of one size are none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

VIEWS = {"ReshapeAliasBackward0", "UnsafeViewBackward0", "ViewBackward0"}
"""What gives other sizes to the same numbers in the same order."""

# What leaves numbers in the order that they have.
_SAME_ORDER = {
    *VIEWS,
    *("AliasBackward0", "CloneBackward0", "LogSoftmaxBackward0", "SqueezeBackward0", "SqueezeBackward1"),
    *("SqueezeBackward2", "ToCopyBackward0", "UnsqueezeBackward0"),
}
_LINEAR = {"AddmmBackward0", "LinearBackward0", "MmBackward0"}
_CONVOLUTION = "Convolution"
# A batch, one axis of elements at least, and the classes.
_FEWEST_AXES = 3


def facts(values: torch.Tensor) -> dict[str, float]:
    """The facts of a loss's input by name; none where there is no graph.

    Args:
        values: of shape (elements, classes), or (batch, classes, ...).
    """
    node = values.grad_fn
    if node is None or values.dim() < 2:
        return {}
    before, maker = _before_views(node)
    return {"classes_mixed": float(bool(before) and _is_mixed(before, [*values.shape], maker))}


def _before_views(node: Any) -> tuple[list[int], str]:
    """The first sizes that tell elements from classes, empty where no view has changed any; and what has made them."""
    before: list[int] = []
    while node is not None and node.name() in _SAME_ORDER:
        if node.name() in VIEWS and len(node._saved_self_sym_sizes) >= _FEWEST_AXES:
            before = [int(size) for size in node._saved_self_sym_sizes]
        node = node.next_functions[0][0]
    return before, "" if node is None else node.name()


def _is_mixed(before: Sequence[int], after: Sequence[int], maker: str) -> bool:
    is_of_convolution = _CONVOLUTION in maker
    classes = after[1]
    if len(after) < _FEWEST_AXES:
        # The channels of a convolution are its second axis.
        is_channels = is_of_convolution and before[1] == classes > 1
        return is_channels and math.prod(before[2:]) > 1 and before[-1] != classes
    stride = math.prod(after[2:])
    if is_of_convolution or classes == 1 or stride == 1 or (classes, stride) in _axes(before):
        return False
    same_sizes = _sizes(before) == _sizes(after)
    return before[-1] == classes and (same_sizes or (maker in _LINEAR and before[0] == after[0]))


def _axes(sizes: Sequence[int]) -> set[tuple[int, int]]:
    """The axes of sizes: how long each one is, and how many numbers lie between two of its elements."""
    return {(size, math.prod(sizes[place + 1 :])) for place, size in enumerate(sizes)}


def _sizes(sizes: Sequence[int]) -> list[int]:
    return sorted(size for size in sizes if size != 1)
