"""Calls of Keras's losses: who listens is told what they are given; in a compiled step, while that is traced.

What gives a symbolic tensor is seen in its graph: softmax, sigmoid, or a product with variables and nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from smd_agent.framework.keras.loss_inputs import SOFTMAX_OVER, KnownLoss, LossGiven, LossLook, Shape, arguments_of
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import replace
from smd_agent.framework.target_reach import RANGES, Range
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.types import Function

_SOFTMAX = "Softmax"
_ACTIVATIONS = (_SOFTMAX, "Sigmoid")
_SAME_VALUES = ("Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient", "Transpose")
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2", "Conv1D", "Conv2D", "Conv3D", "Einsum", "MatMul")
_SUMS = ("Add", "AddV2", "BiasAdd")
_FARTHEST = 8
# Of a call that has not returned: what it returns is a mean over all labels.
_A_MEAN = object()


class LossCall(NamedTuple):
    """A call of a loss.

    Attributes:
        kind: how it is set up.
        labels: what it compares with, None where that is no single tensor.
        predictions: what it is given.
        result: what it has returned; None where that is not the mean over all labels.
    """

    kind: KnownLoss
    labels: Any
    predictions: Any
    result: Any = None

    def told(self) -> Numbers:
        """The facts of it that need no values."""
        return self.kind.told(_shape(self.predictions), _origin(self.kind, self.predictions))

    def tensors(self) -> dict[str, Any]:
        """The symbolic tensors of which the values are asked for."""
        found = {}
        if self.kind.looks_at_input(_shape(self.predictions)):
            found["predictions"] = self.predictions
        if is_a(self.labels, tf.Tensor) and self.kind.looks_at_labels(_shape(self.labels)):
            found["labels"] = source_of(self.labels)
        if is_a(self.result, tf.Tensor):
            found["result"] = self.result
        return found

    def look(self) -> LossLook:
        """The facts of it in an eager step."""
        return self.kind.look(self.told(), given(self.predictions, self.labels, self.result))


class Listener(Protocol):
    """Is told of losses."""

    def awaits_loss(self) -> bool:
        """True if it wants to be told now; asked before every call."""

    def saw_loss(self, call: LossCall) -> None:
        """A loss has been computed."""


listeners: list[Listener] = []


def watch_calls(owner: type) -> Function:
    """Have listeners told of the calls of a class's losses; returns what stands in the place of the method."""

    def around(original: Function) -> Function:
        def called(loss: Any, *args: Any, **kwargs: Any) -> Any:
            told = [listener for listener in listeners if listener.awaits_loss()]
            call = _read(loss, args, kwargs) if told else None
            result = original(loss, *args, **kwargs)
            if call is not None:
                call = call._replace(result=result if call.result is _A_MEAN else None)
                for listener in told:
                    listener.saw_loss(call)
            return result

        return called

    return replace(owner, "__call__", around, why="it is seen what losses are given")


def _read(loss: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LossCall | None:
    found = arguments_of(loss, args, kwargs, tf.Tensor, _range_of)
    if found is None:
        return None
    return LossCall(found.kind, found.labels, found.predictions, _A_MEAN if found.returns_mean else None)


def given(predictions: Any = None, labels: Any = None, result: Any = None) -> LossGiven:
    """The values of one call of a loss, as far as they are known."""
    return LossGiven(*(None if value is None else array_of(value) for value in (predictions, labels, result)))


def array_of(value: Any) -> Array | None:
    """The values; of a tensor that is large and on an accelerator, its first rows."""
    size = int(tf.size(value)) if is_a(value, tf.Tensor) and "CPU" not in (value.device or "CPU").upper() else 0
    if size > LOOKED_AT:
        value = value[: max(8, LOOKED_AT * int(value.shape[0]) // size)]
    found = to_array(value)
    return None if found is None else found[0]


def source_of(labels: Any) -> Any:
    """The tensor that a symbolic one only gives another shape or dtype, such as what the step was called with."""
    found = labels
    for op in _ops(labels):
        if op.type not in _SAME_VALUES or op.type == "Transpose":
            break
        found = op.inputs[0]
    return found


def _shape(tensor: Any) -> Shape:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


def _origin(kind: KnownLoss, tensor: Any) -> Numbers:
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


def _range_of(tensor: Any) -> Range | None:
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
