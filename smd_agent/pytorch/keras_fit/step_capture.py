"""Saved step of a Keras model on PyTorch: what is read before it runs, while it runs, and from what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from smd_agent import guard
from smd_agent.core.failure_domains import (
    GRADIENTS,
    INPUTS,
    LAYERS,
    LOSS_FACTS,
    LOSSES,
    MODES,
    SETTINGS,
    UPDATES,
    WEIGHTS,
)
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras.channel_axes import LayerChannels
from smd_agent.framework.keras.layer_modes import CallModes
from smd_agent.framework.keras.names import Names, definer
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.keras.saved_step import KerasCapture, LogSaver
from smd_agent.framework.keras.types import Call, KerasModule, Layer, Model, Optimizer, Variable
from smd_agent.framework.keras.variables import ModelVariables
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import is_a
from smd_agent.pytorch.keras_fit import loss_calls
from smd_agent.pytorch.keras_fit.fact_adapters import Look
from smd_agent.pytorch.patching import Installed

_UPDATE = "_backend_update_step"


class TorchCapture(KerasCapture):
    """Watches one step while it runs and hands its values to the hook.

    Args: see ``KerasCapture``.
        keras: the package.
        names: of its layers and variables.
    """

    installed_class = Installed

    def __init__(
        self,
        saver: LogSaver,
        model: Model,
        mode: ModeKeys,
        variables: ModelVariables,
        keras: KerasModule,
        names: Names,
    ) -> None:
        # Nothing tells when the model gets other variables.
        super().__init__(saver, model, mode, variables, object(), Look())
        self._keras = keras
        self._names = names
        self._channels = LayerChannels(self.writer.axes)
        self._modes = CallModes(keras.layers.Layer)
        self._has_weights = False
        self._optimizers_saved: set[int] = set()

    def begin(self, arguments: Sequence[object]) -> None:
        """Save the variables and install what sees the rest."""
        self._has_weights = self.save_weights()
        if self.mode is ModeKeys.TRAIN:
            optimizer = attribute(self.model, "optimizer")
            if optimizer is not None:
                self._save_optimizer(optimizer)
        if attribute(self.model, "jit_compile", False):
            # What is compiled must not hold functions of ours.
            line = "with jit_compile=True on PyTorch gradients, inputs and outputs are not saved; weights and logs are"
            guard.say_once((self.writer, "jit_compile"), line)
            return
        patch = self.installed.patch
        patch(
            self._keras.layers.Layer, "__call__", self._around_layer, why="it is seen what layers are given and return"
        )
        patch(type(self.model), "compute_loss", self._around_loss, why="batch_loss and labels are saved")
        base = self._keras.optimizers.Optimizer
        patch(definer(base, "apply"), "apply", self._around_apply, why="it is seen what optimizers update")
        # It gets the gradients that are applied: unscaled, accumulated and clipped.
        for owner in {id(kind): kind for kind in _definers(definer(base, _UPDATE))}.values():
            patch(owner, _UPDATE, self._around_update, why="the gradients that are applied are saved")
        if self.facts.usage.wanted:
            loss = definer(self._keras.losses.Loss, "__call__")
            patch(loss, "__call__", self._around_loss_call, why="it is seen what losses are given")

    def finish(self, outputs: object) -> None:
        """The step is done and has returned this."""
        if not self._has_weights and self.mode is not ModeKeys.TRAIN:
            # It was built by this step, which has not changed it.
            WEIGHTS.run("saving weights", self.save_weights)
        super().finish(outputs)

    def is_tensor(self, value: object) -> bool:
        """True if a value is one of PyTorch's tensors."""
        return torch.is_tensor(value)

    @WEIGHTS.fence("saving an optimizer's variables")
    def _save_optimizer(self, optimizer: Optimizer) -> None:
        """Save an optimizer's variables, once a step; those of the one inside of another belong to that."""
        if id(optimizer) not in self._optimizers_saved:
            self._optimizers_saved.update((id(optimizer), id(attribute(optimizer, "inner_optimizer"))))
            self.save_optimizers([optimizer])

    # While the step runs.

    def _around_layer(self, original: Call) -> Call:
        def call(layer: Layer, *args: object, **kwargs: object) -> Any:
            # Before it runs, because it may overwrite them.
            self._save_inputs(layer, (args, kwargs))
            if layer is self.model:
                self._save_digest((args, kwargs))
            self._before_layer(layer)
            result = original(layer, *args, **kwargs)
            self._save_output(layer, result)
            self._saw_mode(layer, args, kwargs)
            return result

        return call

    @MODES.fence("looking at the modes of layers")
    def _before_layer(self, layer: Layer) -> None:
        self._modes.before(layer, self.model, self)

    @MODES.fence("looking at the modes of layers")
    def _saw_mode(self, layer: Layer, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        modes = self._modes.after(layer, self.model, args, kwargs)
        if self.mode is not ModeKeys.PREDICT:
            self.facts.after_call(self.variables.title(self.model), modes)

    @LAYERS.fence("saving what a layer is given")
    def _save_inputs(self, layer: Layer, inputs: object) -> None:
        self._save_all(self._names_of(layer)[0], inputs)

    @LAYERS.fence("saving what a layer returns")
    def _save_output(self, layer: Layer, output: object) -> None:
        name = self._names_of(layer)[1]
        self._channels.saw(name, layer)
        self._save_all(name, output)

    def _names_of(self, layer: Layer) -> tuple[str, str]:
        if layer is self.model:
            return "inputs", "predictions"
        name = self._names.layers.of(layer, self.model)
        return f"{name}/inputs", f"{name}/outputs"

    def _around_loss(self, original: Call) -> Call:
        def compute_loss(model: Model, *args: object, **kwargs: object) -> Any:
            result = original(model, *args, **kwargs)
            if model is self.model:
                self._save_loss(kwargs.get("y", args[1] if len(args) > 1 else None), result)
            return result

        return compute_loss

    @LOSSES.fence("looking at a loss")
    def _save_loss(self, labels: object, loss: object) -> None:
        self._save_all("labels", labels)
        self._save_all("batch_loss", loss)

    def _around_loss_call(self, original: Call) -> Call:
        def call(loss: Any, *args: object, **kwargs: object) -> Any:
            result = original(loss, *args, **kwargs)
            self._saw_loss(loss, args, kwargs, result)
            return result

        return call

    @LOSS_FACTS.fence("looking at what a loss is given")
    def _saw_loss(self, loss: Any, args: Sequence[object], kwargs: Mapping[str, object], result: object) -> None:
        found = loss_calls.look_at(loss, args, kwargs, result)
        if found is not None:
            self.losses.saw(*found)

    @INPUTS.fence("looking at a model's inputs")
    def _save_digest(self, inputs: object) -> None:
        tensors = [tensor for tensor in self._keras.tree.flatten(inputs) if is_a(tensor, torch.Tensor)]
        self.facts.before_call(self.variables.title(self.model), self.model, tensors)

    def _around_apply(self, original: Call) -> Call:
        def apply(
            optimizer: Optimizer, grads: Sequence[object], trainable_variables: Any = None, **kwargs: object
        ) -> Any:
            if trainable_variables is not None:
                trainable_variables = list(trainable_variables)
            self._saw_apply(optimizer, grads, trainable_variables)
            return original(optimizer, grads, trainable_variables, **kwargs)

        return apply

    @UPDATES.fence("looking at what an optimizer is given")
    def _saw_apply(self, optimizer: Any, gradients: Sequence[object], variables: Sequence[Variable] | None) -> None:
        if variables is None:
            variables = attribute(optimizer, "_trainable_variables", ())
        self.variables.saw_optimizer(optimizer)
        for given in (self.facts.given, self.variables.given):
            given.add(optimizer, gradients, variables)

    @SETTINGS.fence("looking at an optimizer's learning rate")
    def _saw_learning_rate(self, optimizer: Optimizer, value: object) -> None:
        if is_a(value, (torch.Tensor, float)):
            self.facts.saw_learning_rate(title_of(optimizer), value)

    def _around_update(self, original: Call) -> Call:
        def update(
            optimizer: Optimizer,
            grads: Iterable[object],
            trainable_variables: Iterable[Variable],
            *args: object,
            **kwargs: object,
        ) -> Any:
            self._save_optimizer(optimizer)
            self._save_gradients(grads, trainable_variables)
            self._saw_learning_rate(optimizer, args[0] if args else kwargs.get("learning_rate"))
            return original(optimizer, grads, trainable_variables, *args, **kwargs)

        return update

    @GRADIENTS.fence("saving gradients")
    def _save_gradients(self, gradients: Iterable[object], variables: Iterable[Variable]) -> None:
        for gradient, variable in zip(gradients, variables, strict=True):
            self._save(self._names.gradient(variable), gradient)

    def _save_all(self, name: str, value: object) -> None:
        for tensor in self._keras.tree.flatten(value):
            if is_a(tensor, (torch.Tensor, np.ndarray)):
                self._save(name, tensor)

    def _save(self, name: str, value: object) -> None:
        self.writer.save_tensor_now(self.number(name), value)


def _definers(cls: Any) -> Iterator[type]:
    """The class and its subclasses, as far as they define how they are updated."""
    if _UPDATE in vars(cls):
        yield cls
    for subclass in cls.__subclasses__():
        yield from _definers(subclass)
