"""Replacements in layers, losses and optimizers: they save what the running step computes, or tap what is traced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import tensorflow as tf

from smd_agent.core.failure_domains import GRADIENTS, LAYERS, LOSS_FACTS, LOSSES, MODES, SETTINGS, UPDATES, WEIGHTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras.backend import Current, RunningStep
from smd_agent.framework.keras.channel_axes import LayerChannels
from smd_agent.framework.keras.facts import learning_rate_name
from smd_agent.framework.keras.layer_modes import CallModes
from smd_agent.framework.keras.loss_inputs import LOSS, TracedLoss
from smd_agent.framework.keras.names import Names, numbered
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.keras.types import Call, Layer, Model, Optimizer, Variable
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.training_facts import INPUT_DIGEST, USAGE
from smd_agent.tensorflow import layer_calls, loss_calls
from smd_agent.tensorflow.graph.traced_tensors import TensorTaps
from smd_agent.tensorflow.keras_fit.step_capture import TensorflowCapture
from smd_agent.tensorflow.keras_fit.versions import Flavour, leave_untraced, replace_untraced
from smd_agent.tensorflow.optimizer_calls import Listener, OptimizerCall, awaiting, listeners, watch_calls
from smd_agent.tensorflow.replicas import is_other_replica

_REPLICAS = "of {} replicas the first one's batch_loss, labels and layers are saved"

Pairs: TypeAlias = Iterable[tuple[object, Variable]]
"""Gradients with their variables."""


class Distribution(Protocol):
    """A distribution strategy."""

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """The value's part on each of this process's replicas."""


class TensorWatch:
    """Sees the tensors of the steps of one Keras.

    Args:
        flavour: the Keras.
        names: of layers and variables.
        taps: gets the tensors that come up while a function is traced.
        current: where the running step is kept.
    """

    def __init__(self, flavour: Flavour, names: Names, taps: TensorTaps, current: Current[TensorflowCapture]) -> None:
        self._flavour = flavour
        self._names = names
        self._taps = taps
        self._channels = LayerChannels(taps.axes)
        self._modes = CallModes(flavour.layer)
        self._current = current
        # Keras 3's variables by the TensorFlow variable inside.
        self._variables: dict[int, Any] = {}

    def install(self) -> None:
        """Begin to look; called once."""
        flavour = self._flavour
        replace_untraced(flavour.trainer, "compute_loss", self._around_loss, why="batch_loss and labels are saved")
        leave_untraced(layer_calls.watch_calls(flavour.layer))
        for owner, name in flavour.appliers:
            replace_untraced(owner, name, self._around_update, why="the gradients that are applied are saved")
        for owner, name in flavour.callers:
            leave_untraced(watch_calls(owner, name))
        leave_untraced(loss_calls.watch_calls(flavour.loss))
        listeners.append(self)
        layer_calls.listeners.append(self)
        loss_calls.listeners.append(self)

    def _saw(self, name: str, value: object, shape: tuple[int, ...] = ()) -> None:
        """A tensor of the current step has come up: a value, or a symbol while its function is traced."""
        step = self._current.step
        if step is None:
            return
        if tf.executing_eagerly():
            if step.capture is not None:
                step.capture.value(name, value, shape)
            return
        taps = self._taps
        graph: Any = tf.compat.v1.get_default_graph()
        number = 0
        while taps.has(numbered(name, number), graph):
            number += 1
        taps.add(numbered(name, number), value, shape)

    def _idle(self) -> bool:
        step = self._current.step
        return step is None or (step.capture is None and tf.executing_eagerly())

    # What layers are called with, as their listener.

    def awaits_layer(self) -> bool:
        """True if a step of a model runs that is saved or traced."""
        return not self._idle()

    @MODES.fence("looking at the modes of layers")
    def before_layer(self, call: layer_calls.LayerCall) -> None:
        """A layer is about to be called."""
        step = self._current.step
        if step is not None and not is_other_replica():
            owner = step.capture if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
            self._modes.before(call.layer, step.model, owner)

    def after_layer(self, call: layer_calls.LayerCall, result: object) -> None:
        """A layer has returned."""
        self._saw_layer(call.layer, (call.args, call.kwargs), result)
        self._saw_mode(call.layer, call.args, call.kwargs)

    def layer_failed(self, call: layer_calls.LayerCall) -> None:
        """Nothing is kept of a layer while it is called."""

    @MODES.fence("looking at the modes of layers")
    def _saw_mode(self, layer: Layer, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        step = self._current.step
        if step is None or is_other_replica():
            return
        modes = self._modes.after(layer, step.model, args, kwargs)
        if modes is None:
            return
        if not tf.executing_eagerly():
            step.variables.modes = modes
        elif step.capture is not None and step.mode is not ModeKeys.PREDICT:
            step.capture.facts.after_call(step.variables.title(step.model), modes)

    @LAYERS.fence("looking at a layer")
    def _saw_layer(self, layer: Layer, inputs: object, outputs: object) -> None:
        step = self._current.step
        if step is None or is_a(layer, self._flavour.metric) or is_other_replica(_REPLICAS):
            return
        if layer is step.model:
            before, after = "inputs", "predictions"
        else:
            name = self._names.layers.of(layer, step.model)
            before, after = f"{name}/inputs", f"{name}/outputs"
        self._channels.saw(after, layer)
        for base, value in ((before, inputs), (after, outputs)):
            for tensor in tf.nest.flatten(value):
                if is_a(tensor, tf.Tensor):
                    self._saw(base, tensor)
        if layer is step.model:
            self._saw_inputs(step, inputs)

    def _saw_inputs(self, step: RunningStep[TensorflowCapture], inputs: object) -> None:
        """The model has been called with these; of several calls in a step each has a digest."""
        tensors = [tensor for tensor in tf.nest.flatten(inputs, expand_composites=True) if tf.is_tensor(tensor)]
        title = step.variables.title(step.model)
        if not tf.executing_eagerly():
            self._taps.add_inputs(f"{INPUT_DIGEST}{title}", tensors)
        elif step.capture is not None:
            step.capture.facts.before_call(title, step.model, tensors)

    def _around_loss(self, original: Call) -> Call:
        def compute_loss(model: Model, *args: object, **kwargs: object) -> Any:
            result = original(model, *args, **kwargs)
            if not self._idle():
                self._saw_loss(model, args, kwargs, result)
            return result

        return compute_loss

    @LOSSES.fence("looking at a loss")
    def _saw_loss(self, model: Model, args: tuple[object, ...], kwargs: Mapping[str, object], loss: object) -> None:
        step = self._current.step
        if step is None or step.model is not model or is_other_replica(_REPLICAS):
            return
        labels = kwargs.get("y", args[1] if len(args) > 1 else None)
        for tensor in tf.nest.flatten(labels):
            if is_a(tensor, tf.Tensor):
                self._saw("labels", tensor)
        if is_a(loss, tf.Tensor):
            self._saw("batch_loss", loss)

    def _around_update(self, original: Call) -> Call:
        def update(
            optimizer: Optimizer, distribution: Distribution, grads_and_vars: Pairs, *args: object, **kwargs: object
        ) -> Any:
            busy = not self._idle()
            grads_and_vars = list(grads_and_vars)
            if busy:
                self._before_update()
            result = original(optimizer, distribution, grads_and_vars, *args, **kwargs)
            if busy:
                # Where the update is one branch of a condition, gradients are part of that once it has used them.
                self._saw_update(optimizer, distribution, grads_and_vars)
            told = awaiting()
            if told:
                self._tell_learning_rate(told, optimizer, distribution, args, kwargs)
            return result

        return update

    @WEIGHTS.fence("saving weights")
    def _before_update(self) -> None:
        step = self._current.step
        if step is not None and step.capture is not None and tf.executing_eagerly():
            step.capture.before_update()

    @GRADIENTS.fence("looking at an optimizer's gradients")
    def _saw_update(self, optimizer: Optimizer, distribution: Distribution, grads_and_vars: Pairs) -> None:
        step = self._current.step
        if step is None:
            return
        step.variables.saw_optimizer(optimizer)
        for gradient, variable in grads_and_vars:
            gradient = distribution.experimental_local_results(gradient)[0]
            if gradient is not None:
                name = self._names.gradient(self._known(step, optimizer, variable))
                self._saw(name, gradient, tuple(variable.shape))

    @SETTINGS.fence("looking at an optimizer's learning rate")
    def _tell_learning_rate(
        self,
        told: Iterable[Listener],
        optimizer: Any,
        distribution: Distribution,
        args: Sequence[object],
        kwargs: Mapping[str, Any],
    ) -> None:
        # Keras 3 hands over what a schedule has given, Keras 2's older optimizers keep it by device and dtype.
        of_devices: Any = kwargs.get("apply_state") or {}
        found = args[0] if args else next((state.get("lr_t") for state in of_devices.values()), None)
        if found is not None:
            found = distribution.experimental_local_results(found)[0]
        if is_a(found, tf.Tensor):
            for listener in told:
                listener.saw_learning_rate(optimizer, found)

    # What losses are given, as their listener.

    def awaits_loss(self) -> bool:
        """True if a step of a model runs that is saved or traced."""
        return not self._idle()

    @LOSS_FACTS.fence("looking at what a loss is given")
    def saw_loss(self, call: loss_calls.LossCall) -> None:
        """A loss of the running step has been computed."""
        step = self._current.step
        if step is None or is_other_replica():
            return
        if not tf.executing_eagerly():
            name = self._taps.add_loss(f"{USAGE}{LOSS}{call.kind.name}", call.tensors())
            if name is not None:
                step.variables.losses[name.removeprefix(USAGE)] = TracedLoss(call.kind, call.told())
        elif step.capture is not None and step.capture.facts.usage.wanted:
            step.capture.losses.saw(call.kind, call.look())

    # What optimizers are called with, as their listener.

    def awaits_update(self) -> bool:
        """True if a step of a model runs that is saved or traced."""
        return not self._idle()

    @UPDATES.fence("looking at what an optimizer is given")
    def before_update(self, call: OptimizerCall) -> None:
        """An optimizer is about to update variables of the running step."""
        self._before_update()
        step = self._current.step
        if step is None:
            return
        step.variables.given.add(*call)
        if not tf.executing_eagerly():
            step.variables.traced.add(*call)
            known = (variables_in(step.model, kind) for kind in ("variables", "trainable_variables"))
            step.variables.untrained.unfrozen.traced(*known)
        elif step.capture is not None:
            step.capture.facts.given.add(*call)

    @SETTINGS.fence("looking at an optimizer's learning rate")
    def saw_learning_rate(self, optimizer: Optimizer, value: Any) -> None:
        """An optimizer updates with this, which a schedule has given."""
        step = self._current.step
        if not tf.executing_eagerly():
            self._taps.add_setting(learning_rate_name(optimizer), value)
        elif step is not None and step.capture is not None:
            step.capture.facts.saw_learning_rate(title_of(optimizer), value)

    def after_update(self, call: OptimizerCall, result: object) -> None:
        """Nothing is left to be done: what the step has changed is seen at its end."""

    def _known(self, step: RunningStep[TensorflowCapture], optimizer: Optimizer, variable: Variable) -> object:
        """The variable as its layer knows it: Keras 3 hands over the tf.Variable inside its own."""
        if self._flavour.version < 3:
            return variable
        known = self._variables.get(id(variable))
        if known is None or known.value is not variable:
            own: list[Any] = [*variables_in(step.model, "variables"), *attribute(optimizer, "_trainable_variables", ())]
            self._variables = {id(found.value): found for found in own}
            known = self._variables.get(id(variable))
        return variable if known is None else known
