"""Attention that a program has written itself, or had of ``scaled_dot_product_attention``: what it hides, its heads.

``usage/attention/<i>/<fact>``, of the first ones behind the loss of a step in the graph of autograd, of models that are
given tokens, or sequences of numbers: tensors of three axes:

``length``  how many elements the sequence has that attends to itself.
``masked``  1 if it is causal, or given a mask; of a softmax of scores of shape (..., length, length), if one of its
            results above the diagonal is 0; else 0. Of models that are given tokens.
``heads_mixed``  of several heads: 1 if a view alone has made its queries, of shape (batch, heads, length, size), of
                 (batch, length, heads * size), where a transpose has to move the axes; else 0.

What the graph has saved is looked at as it lies there: where the program, or checkpointing, packs it, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.sequence_layers import DIMENSIONS
from smd_agent.framework.step_events import BeforeBackward, ModelCall, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture.class_axes import VIEWS
from smd_agent.pytorch.capture.graph_behind import nodes_behind, saved_by
from smd_agent.pytorch.capture.token_offsets import AXES, is_whole
from smd_agent.pytorch.own_operations import without_gradients

# Of a deep model the last ones tell as much as all.
_MOST = 4
_NODES = 4096
# Fewer elements have no order that a mask could be told by.
_SHORTEST = 3
# Of each axis of the scores.
_LOOKED_AT = 256
_SOFTMAX = "SoftmaxBackward0"
_ATTENTION = "ScaledDotProduct"
# As the kernels call what is added to the scores.
_MASKS = ("attn_mask", "attn_bias")
_MASKED, _OPEN = 1.0, 0.0
# What stands between a softmax and the product of queries and keys: scales, masks, biases.
_OF_SCORES = {*VIEWS, *("AddBackward0", "CloneBackward0", "DivBackward0", "MaskedFillBackward0", "MulBackward0")}
_PRODUCT = "BmmBackward0"
# What leaves the numbers of queries in the order that they have.
_IN_ORDER = {
    *VIEWS,
    *("AliasBackward0", "CloneBackward0", "DivBackward0", "ExpandBackward0", "MulBackward0", "ToCopyBackward0"),
}
_BETWEEN = 16
_HEADS_AXES = 4


class WrittenAttention(UsageProbe, domain=INPUTS, doing="looking at attention in the graph of a loss"):
    """The attention behind the losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._is_of_tokens = self._is_of_rows = False
        self._is_done = False

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        for one in tensors_in(call.inputs):
            self._is_of_tokens = self._is_of_tokens or (one.dim() == AXES and is_whole(one))
            self._is_of_rows = self._is_of_rows or (one.dim() == DIMENSIONS and one.is_floating_point())

    @on(BeforeBackward)
    @without_gradients
    def before_backward(self, backward: BeforeBackward) -> None:
        """A backward pass is about to start: the first one of the step is looked at."""
        if not self.wanted or self._is_done or not (self._is_of_tokens or self._is_of_rows):
            return
        self._is_done = True
        found = 0
        for node in nodes_behind([one.grad_fn for one in tensors_in(backward.tensors)], _NODES):
            numbers = _numbers_of(node)
            if numbers is not None:
                if not self._is_of_tokens:
                    del numbers["masked"]
                self._usage.save(f"attention/{found}", numbers)
                found += 1
                if found == _MOST:
                    return


def _numbers_of(node: Any) -> dict[str, Any] | None:
    name = node.name()
    if name == _SOFTMAX:
        numbers = _of_softmax(saved_by(node, "result"))
        return None if numbers is None else numbers | _of_heads(_queries_behind(node), ())
    numbers = _of_kernel(node) if name.startswith(_ATTENTION) else None
    return None if numbers is None else numbers | _of_heads(node.next_functions[0][0], saved_by(node, "query").shape)


def _queries_behind(softmax: Any) -> Any:
    """The node of the queries behind a softmax of scores; None where a product of matrices has not made these."""
    node = softmax.next_functions[0][0]
    for _ in range(_BETWEEN):
        if node is None or node.name() == _PRODUCT:
            break
        node = node.next_functions[0][0] if node.name() in _OF_SCORES else None
    return node.next_functions[0][0] if node is not None and node.name() == _PRODUCT else None


def _of_heads(node: Any, sizes: Sequence[int]) -> dict[str, float]:
    """The fact of the heads by what views have made queries of; none where they are not of several heads.

    Args:
        node: that of the queries; None if it is not known.
        sizes: of the queries; empty if they are not known.
    """
    for _ in range(_BETWEEN):
        if node is None or node.name() not in _IN_ORDER:
            break
        before = [*getattr(node, "_saved_self_sym_sizes", ())] if node.name() in VIEWS else []
        if len(before) == _HEADS_AXES:
            sizes = before
        elif len(before) == DIMENSIONS and len(sizes) == _HEADS_AXES:
            batch, heads, length, size = sizes
            mixed = before == [batch, length, heads * size] and min(heads, length, size) > 1 and heads != length
            return {"heads_mixed": float(mixed)}
        node = node.next_functions[0][0]
    return {"heads_mixed": 0.0} if len(sizes) == _HEADS_AXES and sizes[1] > 1 else {}


def _of_softmax(result: Any) -> dict[str, Any] | None:
    """The facts of what a softmax has returned; None if it is none over a square of scores."""
    if not is_a(result, torch.Tensor) or result.dim() <= AXES or result.shape[-1] != result.shape[-2]:
        return None
    length = result.shape[-1]
    if length < _SHORTEST or not has_memory(result) or 0 in result.shape:
        return None
    scores = result[(0,) * (result.dim() - AXES)][:_LOOKED_AT, :_LOOKED_AT]
    above = torch.ones(scores.shape, dtype=torch.bool, device=scores.device).triu(1)
    return {"length": length, "masked": ((scores == 0) & above).any().to(torch.float32)}


def _of_kernel(node: Any) -> dict[str, Any] | None:
    """The facts of a call of ``scaled_dot_product_attention``; None if it is none of a sequence to itself."""
    query, key = saved_by(node, "query"), saved_by(node, "key")
    if not is_a(query, torch.Tensor) or not is_a(key, torch.Tensor) or query.shape[-2] != key.shape[-2]:
        return None
    # Where a mask is packed, the query is, too.
    has_mask = any(saved_by(node, name) is not None for name in _MASKS)
    is_masked = has_mask or getattr(node, "_saved_is_causal", True)
    return {"length": query.shape[-2], "masked": _MASKED if is_masked else _OPEN}
