"""Activations before losses: what has given a tensor, seen in its graph or told by Keras.

It is softmax, sigmoid, or a product with variables and nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from smd_agent.framework.keras.loss_inputs import SOFTMAX_OVER, KnownLoss
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.loss_facts import Numbers
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.target_reach import RANGES, Range

_SOFTMAX = "Softmax"
_ACTIVATIONS = (_SOFTMAX, "Sigmoid")
_SAME_VALUES = ("Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient", "Transpose")
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2", "Conv1D", "Conv2D", "Conv3D", "Einsum", "MatMul")
_SUMS = ("Add", "AddV2", "BiasAdd")
_FARTHEST = 8


def origin_of(kind: KnownLoss, tensor: Any) -> Numbers:
    """The facts of what has given a tensor, as far as they show."""
    direct = attribute(tensor, "_keras_logits") is not None
    if is_a(tensor, tf.__internal__.EagerTensor):
        return {"activated": 1.0, **_undone(kind, tensor)} if direct else {}
    for number, op in enumerate(_ops(tensor)):
        if op.type in _ACTIVATIONS:
            found = {"activated": 1.0, "linear": 0.0, **(_undone(kind, tensor) if direct or not number else {})}
            size = op.inputs[0].shape[-1] if op.type == _SOFTMAX and op.inputs[0].shape.rank else None
            return found if size is None else {**found, SOFTMAX_OVER: size}
        if op.type not in _SAME_VALUES:
            return {"activated": 0.0, "linear": float(_is_linear(op))}
    return {}


def range_of(tensor: Any) -> Range | None:
    """The range of the activation that has given a symbolic tensor; None if it has none, or that does not show."""
    op = next((op for op in _ops(tensor) if op.type not in _SAME_VALUES), None)
    return None if op is None else RANGES.get(op.type.lower())


def _undone(kind: KnownLoss, tensor: Any) -> Numbers:
    """Keras computes with what came before the activation; not where the loss gives its input another dtype first."""
    is_same = tensor.dtype == tf.keras.backend.floatx() and kind.ignored is None
    return {"undone": 1.0} if kind.expects_logits and is_same else {}


def _is_linear(op: Any) -> bool:
    if op.type == "BiasAdd":
        return True
    return op.type in (*_SUMS, *_PRODUCTS) and any(_is_variable(given) for given in op.inputs)


def _is_variable(tensor: Any) -> bool:
    for op in _ops(tensor):
        if op.type not in _SAME_VALUES:
            return bool(op.type in ("ReadVariableOp", "VarHandleOp"))
    return False


def _ops(tensor: Any) -> Iterator[Any]:
    """The operations that have led to a symbolic tensor by their first inputs, the last one first; a few of them."""
    for _ in range(_FARTHEST):
        op = None if is_a(tensor, tf.__internal__.EagerTensor) else attribute(tensor, "op")
        if op is None:
            return
        yield op
        if not op.inputs:
            return
        tensor = op.inputs[0]


def source_of(labels: Any) -> Any:
    """The tensor that a symbolic one only gives another shape or dtype, such as what the step was called with."""
    found = labels
    for op in _ops(labels):
        if op.type not in _SAME_VALUES or op.type == "Transpose":
            break
        found = op.inputs[0]
    return found
