"""Calls of models in a saved step, during which their layers are watched: the events of both come from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smd_agent.core.failure_domains import LAYERS, STEPS
from smd_agent.framework import training_facts as facts
from smd_agent.framework.call_limit import CallLimit
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerCall, LayerReturn, ModelCall, ModelReturn, Probes
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.compiled.compiled_layers import CompiledLayers
from smd_agent.pytorch.compiled.layer_source import LayerSource
from smd_agent.pytorch.compiled.unwatchable_layers import unwatchable_layers
from smd_agent.pytorch.model.step_counter import StepCounter, counter_of
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.watched_calls import WatchedCalls
from smd_agent.pytorch.model.wrappers import Layers
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.plain_access import LossModule

_WITHOUT_LAYERS = {"weights", "biases", "gradients", "losses", *facts.COLLECTIONS}


class ModelCalls:
    """The calls of models in one step.

    Args:
        models: the models that are trained.
        probes: get the events.
        looks_at: tells of a layer whether one of these looks at its calls.
        add: called with each model that is called.
        takes: tells whether what is computed now is of the step, and new.

    Attributes:
        in_loss: how many modules are running that compute a loss.
    """

    def __init__(
        self,
        models: TrainedModels,
        probes: Probes,
        looks_at: Callable[[torch.nn.Module], bool],
        add: Callable[[TrackedModule], object],
        takes: Callable[[], bool],
    ) -> None:
        self._models = models
        self._probes = probes
        self._looks_at = looks_at
        self._add = add
        self._takes = takes
        self._calls = CallLimit()
        # Layers that the program calls by themselves, during that call.
        self._own_layers: dict[StepCounter, tuple[str, torch.nn.Module]] = {}
        self._layer_calls = WatchedCalls()
        self._compiled: LayerSource = CompiledLayers(self._saw_compiled, self._layer_calls)
        self._every_layer = bool(models.recorder.collections_due() - _WITHOUT_LAYERS) or models.regexes_changed()
        self.in_loss = 0

    @unseen
    def forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward with its layers watched."""
        tracked = call.tracked
        if not self._calls.takes(tracked, tracked.names.title):
            return call.forward(*args, **kwargs)
        watched = Installed()
        is_loss = issubclass(type(tracked.model), LossModule)
        # Where a loss module is just being found to be a model too, it is captured as a loss already.
        name = None if is_loss and self.in_loss else call.name
        tracked.calls.busy = True
        self.in_loss += is_loss
        try:
            run = self._before_model(call, name, args, kwargs, watched) or call.forward
            result = run(*args, **kwargs)
            self._after_model(call, name, result)
            return result
        finally:
            tracked.calls.busy = False
            self.in_loss -= is_loss
            watched.close()

    @fence("preparing to save a model's layers", STEPS)
    def _before_model(
        self, call: StepCounter, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any], watched: Installed
    ) -> Callable[..., Any]:
        tracked = call.tracked
        self._add(tracked)
        if name is not None:
            self._probes.emit(ModelCall(name, tracked.model, (args, kwargs)))
        layers, looked_at = self._layers_of(tracked)
        if layers or looked_at:
            hidden = unwatchable_layers(tracked)
            for layer_name, layer in (*layers, *looked_at):
                if id(layer) not in hidden.layers and not self._is_called(call, layer_name, layer, args, kwargs):
                    self._watch(layer_name, layer, watched)
            if layers and hidden.regions:
                return self._compiled.watch(call, hidden.regions, layers, watched)
        return call.forward

    def _layers_of(self, tracked: TrackedModule) -> tuple[Layers, Layers]:
        """The layers of a model whose inputs and outputs are saved, and those of whose calls something else is."""
        wants, names = self._models.recorder.wants, self._models.loss_names
        in_loss = is_a(tracked.model, LossModule) or names.may_be(tracked.names.model)
        layers, looked_at = [], []
        for name, layer in tracked.layers():
            names.settle_layer(name, name.removeprefix(f"{tracked.names.title}_"), in_loss)
            if self._every_layer or wants(f"{name}_output_0"):
                layers.append((name, layer))
            elif self._looks_at(layer):
                looked_at.append((name, layer))
        return layers, looked_at

    def _is_called(self, call: StepCounter, name: str, layer: torch.nn.Module, args: Any, kwargs: Any) -> bool:
        """True if a layer is what is called; its call has passed by where the calls of layers are seen."""
        found = call.name is None and counter_of(layer) is call
        if found:
            self._before_layer(name, layer, args, kwargs)
            self._own_layers[call] = name, layer
        return found

    @fence("saving what a model returns", STEPS)
    def _after_model(self, call: StepCounter, name: str | None, output: Any) -> None:
        tracked = call.tracked
        self._probes.emit(ModelReturn(name, tracked.names.title, tracked.model, output))
        own = self._own_layers.pop(call, None)
        if own is not None:
            self._after_layer(*own, output)

    def _watch(self, name: str, layer: torch.nn.Module, watched: Installed) -> None:
        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            self._before_layer(name, module, args, kwargs)

        def after(module: torch.nn.Module, output: Any) -> None:
            self._after_layer(name, module, output)

        watched.on_close(self._layer_calls.watch(layer, before, after))

    @fence("looking at a layer", STEPS)
    def _before_layer(self, name: str, layer: torch.nn.Module, args: Any, kwargs: Any) -> None:
        # Another thread may run the same model at the same time, in no step.
        if self._models.in_this_thread and self._takes():
            self._probes.emit(LayerCall(name, layer, args, kwargs))

    @fence("looking at a layer", STEPS)
    def _after_layer(self, name: str, layer: torch.nn.Module, output: Any) -> None:
        if self._models.in_this_thread:
            self._probes.emit(LayerReturn(name, layer, None, output))

    @fence("saving layers of a compiled region", LAYERS)
    def _saw_compiled(self, name: str, kind: str, value: Any) -> None:
        """Of a layer that another one runs in the place of."""
        self._probes.emit(
            LayerCall(name, None, (value,), {}) if kind == "input" else LayerReturn(name, None, None, value)
        )
