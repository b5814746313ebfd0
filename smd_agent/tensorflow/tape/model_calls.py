"""Models of Keras that a loop with a GradientTape calls while a tape records, with their inputs and modes.

Which of them the step trains is known when the tape has computed gradients: a teacher and a loss made of a model's
features are called in the same way.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from smd_agent.core.failure_domains import MODES
from smd_agent.framework.keras.layer_modes import CallModes
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.framework.program_lines import is_programs, line_at, line_in
from smd_agent.framework.weak_references import Reference
from smd_agent.interpreter.callers import callers
from smd_agent.tensorflow.graph.loss_graph import inner_variable
from smd_agent.tensorflow.layer_calls import LayerCall

# Calls that are remembered until the next gradients.
_MOST = 8


@dataclass(frozen=True, eq=False)
class ModelCalled:
    """A call of a model.

    model: it.
    title: its name in the run.
    modes: in which it and its layers were called; None where that is not known.
    line: of the program, as text, where it was called; None where that is not known.
    inputs: tensors and arrays that it was given: values, or symbols of the function that is traced.
    """

    model: weakref.ref[Any]
    title: str
    modes: Modes | None
    line: str | None
    inputs: tuple[Any, ...]


def trained_among(calls: Iterable[ModelCalled], variables: Iterable[Any]) -> Iterator[ModelCalled]:
    """Yield the calls of models of which one of some variables is a weight that can be trained."""
    trained = {id(inner_variable(variable)) for variable in variables}
    for call in calls:
        model = call.model()
        own = () if model is None else variables_in(model, "trainable_variables")
        if any(id(inner_variable(variable)) in trained for variable in own):
            yield call


class _Open(threading.local):
    """The call of a model that this thread is in; layers inside of it are its own."""

    model: Any = None
    modes: CallModes | None = None


class ModelCalls:
    """Sees the calls of models; a listener of layers.

    Args:
        awaits: True if a tape records, and a function is traced or a step may be saved.
        traced: is told of a call in a function that is being traced.
    """

    def __init__(self, awaits: Callable[[], bool], traced: Callable[[ModelCalled], None]) -> None:
        self.awaits_layer = awaits
        self._traced = traced
        self._open = _Open()
        self._calls: list[ModelCalled] = []

    @MODES.fence("looking at the modes of layers")
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called."""
        if self._open.model is None and in_class(type(call.layer), "make_train_function") is not None:
            self._open.model = call.layer
            self._open.modes = CallModes(call.base)
        if self._open.modes is not None:
            self._open.modes.before(call.layer, self._open.model, self)

    @MODES.fence("looking at the modes of layers")
    def after_layer(self, call: LayerCall, result: object) -> None:
        """A layer has returned."""
        model, modes = self._open.model, self._open.modes
        if modes is None:
            return
        is_model = call.layer is model
        if is_model:
            self._open.model = self._open.modes = None
        found = modes.after(call.layer, model, call.args, call.kwargs)
        if is_model:
            title = str(attribute(model, "name"))
            self._saw(ModelCalled(Reference(model), title, found, _line(result), _tensors(call)))

    def layer_failed(self, call: LayerCall) -> None:
        """A layer has raised an error."""
        if call.layer is self._open.model:
            self._open.model = self._open.modes = None

    def _saw(self, call: ModelCalled) -> None:
        if tf.executing_eagerly():
            self._calls = [*self._calls[1 - _MOST :], call]
        else:
            self._traced(call)

    def take(self, variables: Collection[Any]) -> list[ModelCalled]:
        """The calls of models of which some variables are weights, which are forgotten."""
        found = [*trained_among(self._calls, variables)] if self._calls else []
        self._calls = [call for call in self._calls if call not in found]
        return found

    def forget(self) -> None:
        """Let go of the calls so far."""
        self._calls = []


def _line(result: Any) -> str | None:
    """The line of the program that is running; where AutoGraph has written it anew, the operations know the old one."""
    frames = [frame for frame in callers() if is_programs(frame.f_code.co_filename)]
    if tf.executing_eagerly():
        return line_in(frames)
    operation = next((one.op for one in tf.nest.flatten(result) if is_a(one, tf.Tensor)), None)
    traced = [] if operation is None else [one for one in operation.traceback if is_programs(one.filename)]
    # Beneath them are those of the model's own call.
    found = traced[len(frames) - 1] if 0 < len(frames) <= len(traced) else None
    return None if found is None else line_at(found.filename, found.lineno)


def _tensors(call: LayerCall) -> tuple[Any, ...]:
    given = tf.nest.flatten((call.args, call.kwargs), expand_composites=True)
    return tuple(one for one in given if tf.is_tensor(one) or is_a(one, np.ndarray))
