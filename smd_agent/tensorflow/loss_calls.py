"""Calls of Keras's losses: who listens is told what they are given; in a compiled step, while that is traced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import tensorflow as tf
from tensorflow.python.eager import record

from smd_agent.framework.keras.loss_inputs import KnownLoss, LossGiven, LossLook, Shape, arguments_of
from smd_agent.framework.loss_facts import Array, Numbers, swapped
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import replace
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.tensorflow.activations import origin_of, range_of, source_of
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.types import Function

# Of a call that has not returned: what it returns is a mean over all labels.
_A_MEAN = object()


class LossCall(NamedTuple):
    """A call of a loss.

    Attributes:
        kind: how it is set up.
        labels: what it compares with, None where that is no single tensor.
        predictions: what it is given.
        result: what it has returned; None where that is not the mean over all labels.
        trained: which of the two a tape follows, as ``loss_facts.swapped`` has it.
    """

    kind: KnownLoss
    labels: Any
    predictions: Any
    result: Any = None
    trained: Mapping[str, float] = MappingProxyType({})

    def told(self) -> Numbers:
        """The facts of it that need no values."""
        origin = origin_of(self.kind, self.predictions)
        return self.kind.told(_shape(self.predictions), {**origin, **self.trained})

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
    found = arguments_of(loss, args, kwargs, tf.Tensor, range_of)
    if found is None:
        return None
    trained = swapped(_is_followed(found.predictions), _is_followed(found.labels))
    return LossCall(found.kind, found.labels, found.predictions, _A_MEAN if found.returns_mean else None, trained)


def _is_followed(value: Any) -> bool:
    """True if a tape follows a tensor: it was computed from a variable, and no gradient is kept from it."""
    return is_a(value, tf.Tensor) and bool(record.should_record_backprop([value]))


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


def _shape(tensor: Any) -> Shape:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
