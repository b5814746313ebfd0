"""Layers, losses and optimizers of the running step: values when it runs eagerly, notes while it is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from smd_agent import session
from smd_agent.framework.keras_names import numbered
from smd_agent.tensorflow.strategy import is_other_replica

if TYPE_CHECKING:
    from smd_agent.tensorflow.keras_step import StepFunction
    from smd_agent.tensorflow.keras_watch import KerasWatch

_REPLICAS = "of {} replicas the first one's batch_loss, labels and layers are saved"


class Notes:
    """What is seen of the tensors of a Keras's steps."""

    def __init__(self, watch: KerasWatch) -> None:
        self._watch = watch
        self._variables: dict[int, Any] = {}

    def install(self) -> None:
        """Begin to look; called once."""
        from smd_agent.tensorflow.keras_watch import wrap

        flavour = self._watch.flavour
        wrap(flavour.trainer, "compute_loss", self._around_loss)
        wrap(flavour.layer, "__call__", self._around_layer)
        wrap(flavour.history, "on_epoch_end", self._around_epoch_end)
        for owner, name in flavour.appliers:
            wrap(owner, name, self._around_update)

    def _note(self, name: str, value: Any, shape: tuple[int, ...] = ()) -> None:
        """A tensor of the current step has come up: a value, or a symbol while its function is traced."""
        step = self._watch.current
        if step is None:
            return
        if tf.executing_eagerly():
            if step.capture is not None:
                step.capture.value(name, value, shape)
            return
        book = self._watch.book
        graph: Any = tf.compat.v1.get_default_graph()
        number = 0
        while book.has(numbered(name, number), graph):
            number += 1
        book.note(numbered(name, number), value, shape)

    def _idle(self) -> bool:
        step = self._watch.current
        return step is None or (step.capture is None and tf.executing_eagerly())

    def _around_layer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            outputs = original(layer, *args, **kwargs)
            if not self._idle():
                self._saw_layer(layer, (args, kwargs), outputs)
            return outputs

        return call

    @session.fence("looking at a layer")
    def _saw_layer(self, layer: Any, inputs: Any, outputs: Any) -> None:
        step = self._watch.current
        if step is None or isinstance(layer, self._watch.flavour.metric) or is_other_replica(_REPLICAS):
            return
        if layer is step.model:
            before, after = "inputs", "predictions"
        else:
            name = self._watch.names.layers.of(layer, step.model)
            before, after = f"{name}/inputs", f"{name}/outputs"
        for base, value in ((before, inputs), (after, outputs)):
            for tensor in tf.nest.flatten(value):
                if isinstance(tensor, tf.Tensor):
                    self._note(base, tensor)

    def _around_loss(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compute_loss(model: Any, *args: Any, **kwargs: Any) -> Any:
            loss = original(model, *args, **kwargs)
            if not self._idle():
                self._saw_loss(model, args, kwargs, loss)
            return loss

        return compute_loss

    @session.fence("looking at a loss")
    def _saw_loss(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Any) -> None:
        step = self._watch.current
        if step is None or step.model is not model or is_other_replica(_REPLICAS):
            return
        labels = kwargs.get("y", args[1] if len(args) > 1 else None)
        for tensor in tf.nest.flatten(labels):
            if isinstance(tensor, tf.Tensor):
                self._note("labels", tensor)
        if isinstance(loss, tf.Tensor):
            self._note("batch_loss", loss)

    def _around_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(optimizer: Any, distribution: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            grads_and_vars = list(grads_and_vars)
            busy = not self._idle()
            if busy:
                self._before_update()
            found = original(optimizer, distribution, grads_and_vars, *args, **kwargs)
            if busy:
                # Where the update is one branch of a condition, gradients are part of that once it has used them.
                self._saw_update(optimizer, distribution, grads_and_vars)
            return found

        return update

    @session.fence("saving weights")
    def _before_update(self) -> None:
        step = self._watch.current
        if step is not None and step.capture is not None and tf.executing_eagerly():
            step.capture.before_update()

    @session.fence("looking at an optimizer's gradients")
    def _saw_update(self, optimizer: Any, distribution: Any, grads_and_vars: list[tuple[Any, Any]]) -> None:
        step = self._watch.current
        if step is None:
            return
        step.saw_optimizer(optimizer)
        for gradient, variable in grads_and_vars:
            gradient = distribution.experimental_local_results(gradient)[0]
            if gradient is not None:
                name = self._watch.names.gradient(self._known(step, optimizer, variable))
                self._note(name, gradient, tuple(variable.shape))

    def _known(self, step: StepFunction, optimizer: Any, variable: Any) -> Any:
        """The variable as its layer knows it: Keras 3 hands over the tf.Variable inside its own."""
        if self._watch.flavour.version < 3:
            return variable
        known = self._variables.get(id(variable))
        if known is None or known.value is not variable:
            own = [*step.model.variables, *getattr(optimizer, "_trainable_variables", ())]
            self._variables = {id(found.value): found for found in own}
            known = self._variables.get(id(variable), variable)
        return known

    def _around_epoch_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def on_epoch_end(callback: Any, epoch: int, logs: Any = None) -> Any:
            self._saw_epoch(logs)
            return original(callback, epoch, logs)

        return on_epoch_end

    @session.fence("saving the logs of an epoch")
    def _saw_epoch(self, logs: Any) -> None:
        hook = self._watch.hook()
        if logs and hook is not None:
            hook.save_epoch({name: value for name, value in logs.items() if name.startswith("val_")})
