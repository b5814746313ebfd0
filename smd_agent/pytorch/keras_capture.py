"""One saved step of a Keras model on PyTorch: what is read before it runs, while it runs, and from what it returns."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from smd_agent import guard, session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras_names import Names, definer, leaf_variables, numbered, variables_of
from smd_agent.pytorch.keras_hook import KerasHook

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


class Capture:
    """Watches one step while it runs and hands its values to the hook.

    Args:
        hook: to save with; a step of it is open.
        keras: the package.
        names: of its layers and variables.
        model: whose step it is.
        mode: of the step.
    """

    def __init__(self, hook: KerasHook, keras: Any, names: Names, model: Any, mode: ModeKeys) -> None:
        self._hook = hook
        self._keras = keras
        self._names = names
        self._model = model
        self._mode = mode
        self._counts: Counter[str] = Counter()
        self._undo: list[Callable[[], object]] = []
        self._has_weights = False
        self._optimizers_saved: set[int] = set()

    @session.fence("opening a step")
    def open(self) -> None:
        """Save the variables and install what sees the rest."""
        self._save_weights()
        if self._mode is ModeKeys.TRAIN:
            optimizer = getattr(self._model, "optimizer", None)
            if optimizer is not None:
                self._save_optimizer(optimizer)
        if self._model.jit_compile:
            # What is compiled must not hold functions of ours.
            line = "with jit_compile=True on PyTorch gradients, inputs and outputs are not saved; weights and logs are"
            guard.say_once((self._hook, "jit_compile"), line)
            return
        layer = self._keras.layers.Layer
        self._patch(layer, "__call__", self._around_layer)
        self._patch(type(self._model), "compute_loss", self._around_loss)
        # It gets the gradients that are applied: unscaled, accumulated and clipped.
        update = "_backend_update_step"
        for owner in set(_definers(definer(self._keras.optimizers.Optimizer, update), update)):
            self._patch(owner, update, self._around_update)

    def close(self) -> None:
        """Remove everything that was installed."""
        while self._undo:
            self._undo.pop()()

    @session.fence("saving the logs of a step")
    def finish(self, outputs: Any) -> None:
        """The step is done and has returned this."""
        if not self._has_weights and self._mode is not ModeKeys.TRAIN:
            # It was built by this step, which has not changed it.
            self._save_weights()
        if self._mode is ModeKeys.TRAIN:
            self._tell_of_gradients()
        if self._mode is not ModeKeys.PREDICT and isinstance(outputs, Mapping):
            self._hook.save_logs(outputs, torch.is_tensor)

    # Variables.

    def _save_weights(self) -> None:
        pairs = {
            self._names.weight(layer, variable, self._model): variable.value
            for layer, variable in leaf_variables(self._model)
        }
        self._has_weights = bool(pairs)
        self._hook.save_tensors(list(pairs), list(pairs.values()))

    @session.fence("saving an optimizer's variables")
    def _save_optimizer(self, optimizer: Any) -> None:
        """Save an optimizer's variables, once a step; those of the one inside of another belong to that."""
        hook = self._hook
        if (
            CollectionKeys.OPTIMIZER_VARIABLES not in hook.include_collections
            or id(optimizer) in self._optimizers_saved
        ):
            return
        self._optimizers_saved.update((id(optimizer), id(getattr(optimizer, "inner_optimizer", None))))
        pairs = {self._names.plain(variable): variable.value for variable in variables_of(optimizer)}
        for name in pairs:
            hook.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
        hook.save_tensors(list(pairs), list(pairs.values()))

    # While the step runs.

    def _around_layer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            before, after = self._names_of(layer)
            # Before it runs, because it may overwrite them.
            self._save_all(before, (args, kwargs))
            outputs = original(layer, *args, **kwargs)
            self._save_all(after, outputs)
            return outputs

        return call

    def _names_of(self, layer: Any) -> tuple[str, str]:
        if layer is self._model:
            return "inputs", "predictions"
        name = self._names.layers.of(layer, self._model)
        return f"{name}/inputs", f"{name}/outputs"

    def _around_loss(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compute_loss(model: Any, *args: Any, **kwargs: Any) -> Any:
            loss = original(model, *args, **kwargs)
            if model is self._model:
                self._save_all("labels", kwargs.get("y", args[1] if len(args) > 1 else None))
                self._save_all("batch_loss", loss)
            return loss

        return compute_loss

    def _around_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(optimizer: Any, grads: Any, trainable_variables: Any, *args: Any, **kwargs: Any) -> Any:
            self._save_optimizer(optimizer)
            self._save_gradients(grads, trainable_variables)
            return original(optimizer, grads, trainable_variables, *args, **kwargs)

        return update

    @session.fence("saving gradients")
    def _save_gradients(self, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        for gradient, variable in zip(gradients, variables, strict=True):
            self._save(self._names.gradient(variable), gradient)

    @session.fence("saving a tensor of a step")
    def _save_all(self, name: str, value: Any) -> None:
        for tensor in self._keras.tree.flatten(value):
            if isinstance(tensor, (torch.Tensor, np.ndarray)):
                self._save(name, tensor)

    def _save(self, name: str, value: Any) -> None:
        count = self._counts[name]
        self._counts[name] += 1
        self._hook.save_tensor_now(numbered(name, count), value)

    def _tell_of_gradients(self) -> None:
        number = getattr(getattr(self._model, "optimizer", None), "gradient_accumulation_steps", None)
        if isinstance(number, int) and not any(name.startswith("gradients/") for name in self._counts):
            guard.say_once(
                "gradient_accumulation_steps",
                f"the optimizer applies the mean gradient of {number} steps in the last of them: gradients are saved"
                " in those steps only",
            )

    def _patch(self, owner: Any, name: str, around: Wrapper) -> None:
        own = vars(owner).get(name)
        original = getattr(owner, name)
        wrapper = functools.wraps(original)(around(original))
        setattr(owner, name, wrapper)

        def restore() -> None:
            # Somebody may have wrapped ours in the meantime; then theirs stays.
            if vars(owner).get(name) is wrapper:
                if own is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)

        self._undo.append(restore)


def _definers(cls: Any, name: str) -> Iterator[type]:
    """The class and its subclasses, as far as they define a method."""
    if name in vars(cls):
        yield cls
    for subclass in cls.__subclasses__():
        yield from _definers(subclass, name)
