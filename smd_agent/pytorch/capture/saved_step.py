"""The patches and hooks of one saved step and what they save; all of them are removed when the step closes.

weights    as they stand when the step opens;
inputs     of a module before it runs, because it may overwrite them; outputs as it returns them;
losses     see ``losses``;
gradients  see ``gradients``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smd_agent import guard
from smd_agent.core.domains import GIVEN, LAYERS, LOSS_FACTS, LOSSES, STEPS, UPDATES, WEIGHTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework import step_events as events
from smd_agent.framework import training_facts as facts
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture.channels import OutputChannels
from smd_agent.pytorch.capture.gradients import Gradients
from smd_agent.pytorch.capture.loss_names import is_unreduced
from smd_agent.pytorch.capture.losses import Losses
from smd_agent.pytorch.capture.outside_calls import OutsideCalls
from smd_agent.pytorch.capture.persistent_hooks import LossModule, watch
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.step_facts import StepFacts
from smd_agent.pytorch.capture.trained_roles import TrainedRoles, has_values
from smd_agent.pytorch.compiled.compiled_layers import CompiledLayers
from smd_agent.pytorch.compiled.layer_source import LayerSource
from smd_agent.pytorch.compiled.unwatchable_layers import unwatchable_layers
from smd_agent.pytorch.fences import fence
from smd_agent.pytorch.model.step_counter import StepCounter, TrackedModule, counter_of
from smd_agent.pytorch.model.watched_calls import WatchedCalls
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.tracing import apart, graph_task, is_compiling, is_opaque
from smd_agent.pytorch.updates import ids_of

# Of a model that is called more often in one step, the further calls would add nothing but volume.
CALLS = 16

_OWN_COLLECTIONS = {"weights", "biases", "gradients", "losses", *facts.COLLECTIONS}


class SavedStep(CapturedStep):
    """One step that is being saved: what is installed, and what has been saved so far.

    Args:
        models: the models that are trained.

    Attributes:
        step: its number over all modes.
        called: the models that were called in it, from no other model.
    """

    installed_class = Installed

    def __init__(self, models: TrainedModels) -> None:
        super().__init__(models.recorder)
        self._models = models
        self.step = models.recorder.position.step
        self.called: set[TrackedModule] = set()
        self._closed = False
        self._saved: set[TrackedModule] = set()
        self._had_pass = False
        self._calls: dict[TrackedModule, int] = {}
        self._late: dict[TrackedModule, list[tuple[str, torch.nn.Parameter]]] = {}
        self._roles = TrainedRoles(models.roles)
        self._loss_layers: set[str] = set()
        self._names = models.loss_names
        self._gradients = Gradients(self.writer, models.training_goes_on)
        self._losses = Losses(models, self._gradients.scales, self.save_io, self._save_loss, self._titles_called)
        self._layer_calls = WatchedCalls()
        # Layers that the program calls by themselves, during that call.
        self._own_layers: dict[StepCounter, tuple[str, torch.nn.Module]] = {}
        self._compiled: LayerSource = CompiledLayers(self.save_io, self._layer_calls)
        self._outside = OutsideCalls(models)
        self._channels = OutputChannels(self.writer)
        self._facts = StepFacts(models, self.writer)
        self._every_layer = bool(self.writer.collections_due() - _OWN_COLLECTIONS) or models.regexes_changed()

    @apart
    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        for tracked in self._models.models_in_use():
            self.save_weights(tracked)
        self.installed.patch(torch.autograd, "backward", self._wrap_backward, why="gradients and losses are saved")
        self._gradients.install(self.installed)
        self._losses.install(self.installed, self._after_loss_function)
        watch.begin(self, amid=self._models.amid_training)
        self.installed.on_close(lambda: watch.end(self))
        self.installed.on_close(self._outside.end)
        if self.writer.mode is ModeKeys.EVAL:
            self._look_outside()

    @apart
    def close(self) -> None:
        """Remove everything that was installed."""
        self.installed.close()
        self._gradients.close()
        self._losses.close()
        self._facts.emit(events.StepEnd())
        self._channels.close()
        WEIGHTS.run("saving weights that nothing trains", self._roles.close)
        self._closed = True

    def keep_called_models(self) -> None:
        """Read no gradients but those of the models that were called: the others may be another thread's."""
        self._gradients.keep({id(parameter) for tracked in self.called for _, parameter in tracked.parameters()})

    def _left_out(self) -> bool:
        # What another thread is in the middle of comes back to a step that is closed.
        return self._closed or self._outside.seen or self._models.left_out()

    def save_weights(self, tracked: TrackedModule) -> None:
        """Save a model's parameters, once a step."""
        if tracked not in self._saved:
            self._saved.add(tracked)
            pairs = list(tracked.parameters())
            WEIGHTS.run("telling weights from biases", lambda: self._roles.settle(tracked, pairs))
            self._gradients.add_parameters(pairs)
            self._facts.emit(events.NewParameters(tracked.title, tracked, pairs))
            self._save_weights(tracked, pairs)
            WEIGHTS.run("keeping weights for the end", lambda: self._models.last_weights.keep(tracked, pairs))

    @WEIGHTS.fence("saving weights")
    def _save_weights(self, tracked: TrackedModule, pairs: list[tuple[str, torch.nn.Parameter]]) -> None:
        self._late[tracked] = [pair for pair in pairs if not has_values(pair[1])]
        self._write([pair for pair in pairs if has_values(pair[1])])

    @fence("saving weights that turned out to be trained", WEIGHTS)
    def _save_doubtful(self, differentiated: list[int]) -> None:
        self._write([*self._roles.turned_out_trained(differentiated)])

    def _save_late_weights(self, tracked: TrackedModule) -> None:
        """Save parameters that had no values before the forward."""
        late = self._late.get(tracked)
        if late:
            self._write([pair for pair in late if has_values(pair[1])])
            self._late[tracked] = []

    def _write(self, pairs: list[tuple[str, torch.nn.Parameter]]) -> None:
        self.writer.save_tensors([name for name, _ in pairs], [parameter for _, parameter in pairs])

    @unseen
    def forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward with its layers watched."""
        tracked = call.tracked
        if not self._takes_call(tracked):
            return call.forward(*args, **kwargs)
        watched = Installed()
        is_loss = issubclass(type(tracked.model), LossModule)
        # Where a loss module is just being found to be a model too, it is captured as a loss already.
        name = None if is_loss and self._losses.in_module else call.name
        tracked.busy = True
        self._losses.in_module += is_loss
        try:
            run = self._before_forward(call, name, args, kwargs, watched) or call.forward
            result = run(*args, **kwargs)
            self._after_forward(tracked, name, result)
            own = self._own_layers.pop(call, None)
            if own is not None:
                self._save_layer_output(own[0], result, own[1])
            return result
        finally:
            tracked.busy = False
            self._losses.in_module -= is_loss
            watched.close()

    def _takes_call(self, tracked: TrackedModule) -> bool:
        self._calls[tracked] = calls = self._calls.get(tracked, 0) + 1
        if calls > CALLS:
            line = f"inputs and outputs are saved of the first {CALLS} calls of {tracked.title} in a step"
            guard.say_once(("calls", tracked.title), line)
        return calls <= CALLS

    @fence("preparing to save a model's layers", STEPS)
    def _before_forward(
        self, call: StepCounter, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any], watched: Installed
    ) -> Callable[..., Any]:
        tracked = call.tracked
        self.save_weights(tracked)
        if name is not None:
            self.save_io(name, "input", (args, kwargs))
            self._facts.before_call(name, tracked.model, args, kwargs)
        wants, in_loss = self.writer.wants, is_a(tracked.model, LossModule) or self._names.may_be(tracked.name)
        layers, looked_at = [], []
        for layer_name, layer in tracked.layers():
            path = layer_name.removeprefix(f"{tracked.title}_")
            may_be_loss = self._names.settle_layer(layer_name, path, in_loss)
            if self._every_layer or wants(f"{layer_name}_output_0"):
                layers.append((layer_name, layer))
                if may_be_loss:
                    self._loss_layers.add(layer_name)
            elif self._facts.looks_at(layer):
                looked_at.append((layer_name, layer))
        self._channels.add(tracked.model, name, layers)
        if layers or looked_at:
            hidden = unwatchable_layers(tracked)
            for layer_name, layer in (*layers, *looked_at):
                if id(layer) not in hidden.layers and not self._is_called(call, layer_name, layer, args, kwargs):
                    self._watch_layer(layer_name, layer, watched)
            if layers and hidden.regions:
                return self._compiled.watch(call, hidden.regions, layers, watched)
        return call.forward

    def _is_called(self, call: StepCounter, name: str, layer: torch.nn.Module, args: Any, kwargs: Any) -> bool:
        """Whether a layer is what is called; its call has passed by where the calls of layers are seen."""
        found = call.name is None and counter_of(layer) is call
        if found:
            self._save_layer_input(name, layer, args, kwargs)
            self._own_layers[call] = name, layer
        return found

    @fence("saving what a model returns", LAYERS)
    def _after_forward(self, tracked: TrackedModule, name: str | None, output: Any) -> None:
        self._save_late_weights(tracked)
        if name is not None:
            self._facts.emit(events.ModelReturn(name, tracked.title, tracked.model, output))
            if is_a(tracked.model, LossModule):
                self._save_loss(name, output)
                self._losses.is_saved(output)
            else:
                self._save_output(name, output, self._names.may_be(name), tracked.model)
        self._losses.after_model(tracked.title, output)

    @fence("saving a layer", LAYERS)
    def _save_layer_input(self, name: str, layer: torch.nn.Module, args: Any, kwargs: Any) -> None:
        # Another thread may run the same model at the same time, in no step.
        if self._models.in_this_thread:
            if self._is_computing():
                self._facts.emit(events.LayerCall(name, layer, args, kwargs))
            self.save_io(name, "input", (args, kwargs))

    @fence("saving a layer", LAYERS)
    def _save_layer_output(self, name: str, output: Any, module: torch.nn.Module) -> None:
        if self._models.in_this_thread:
            self._save_output(name, output, name in self._loss_layers, module)

    def _watch_layer(self, name: str, layer: torch.nn.Module, watched: Installed) -> None:
        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            self._save_layer_input(name, module, args, kwargs)

        def after(module: torch.nn.Module, output: Any) -> None:
            self._save_layer_output(name, output, module)

        watched.on_close(self._layer_calls.watch(layer, before, after))

    @LAYERS.fence("saving what a module returns")
    def _save_output(self, name: str, output: Any, may_be_loss: bool, module: torch.nn.Module | None) -> None:
        """Save what a module has returned; by its name it may be a loss."""
        if may_be_loss and graph_task() == -1:
            for tensor_name, tensor in self._to_be_saved(name, output):
                if tensor.numel() == 1 or is_unreduced(module):
                    self._names.put_in(tensor_name)
                    self._losses.is_saved(tensor)
                else:
                    self._names.leave_out(tensor_name)
        self.save_io(name, "output", output)

    def _save_loss(self, name: str, loss: Any) -> None:
        for tensor_name, _ in self._to_be_saved(name, loss):
            self._names.put_in(tensor_name)
        self._save_values(name, "output", loss)

    def _to_be_saved(self, name: str, output: Any) -> list[tuple[str, torch.Tensor]]:
        number = self.counts.get(f"{name}_output", 0)
        return [(f"{name}_output_{number + i}", tensor) for i, tensor in enumerate(tensors_in(output))]

    def _titles_called(self) -> list[str]:
        return [tracked.title for tracked in self.called or self._models.models_in_use()]

    @LAYERS.fence("saving a module's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the tensors of a module's input or output, numbered over the whole step."""
        self._save_values(name, kind, value)

    def _save_values(self, name: str, kind: str, value: Any) -> None:
        if self._is_computing():
            tensors = tensors_in(value)
            full_name = f"{name}_{kind}"
            self._roles.are_of_layers(full_name, self.counts.get(full_name, 0), len(tensors))
            self._channels.saw(name, kind, tensors)
            self.save_numbered(full_name, tensors)

    def _is_computing(self) -> bool:
        """Whether what layers are given is of this step, and new."""
        # Inside a backward pass it is the recomputation of an activation checkpoint: the values were saved before.
        return self.writer.position.saving and graph_task() == -1 and not self._left_out()

    @fence("saving a tensor that the script records", GIVEN)
    def save_recorded(self, name: str, tensor: torch.Tensor) -> None:
        """Save a tensor under the name that the script gives it; a loss has no other name then."""
        self._save_output(name, tensor, self._names.may_be(name), None)

    @fence("saving a loss", LOSSES)
    def before_loss(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module of ``torch.nn`` is about to run."""
        if self._left_out() or is_opaque():
            return
        if not self._is_of_training(args, kwargs):
            self._losses.before_module(module, args, kwargs)
        elif watch.listener is not None:
            watch.listener.before_loss(module, args, kwargs)

    @fence("looking at what a loss is given", LOSS_FACTS)
    def _after_loss_function(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Any) -> None:
        """A functional loss has been computed of this."""
        if self.writer.position.step == self.step and not self._left_out():
            self._facts.emit(events.LossCall(function, args, kwargs, loss))

    def _is_of_training(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a loss that is about to be computed is another step's: the training step's, which has waited."""
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in((args, kwargs))):
            self._models.training_goes_on()
        return watch.listener is not self

    @fence("saving a loss", LOSSES)
    def after_loss(self, module: torch.nn.Module, loss: Any) -> None:
        """It has run."""
        if not (self._left_out() or is_opaque()):
            self._losses.after_module(module, loss)

    @STEPS.fence("looking at an optimizer")
    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer is about to use gradients."""
        self._models.training_goes_on()
        if watch.listener is not self:
            if watch.listener is not None:
                watch.listener.before_optimizer(optimizer)
            return
        if self._left_out():
            return
        self._gradients.before_optimizer(optimizer)
        self._facts.emit(events.BeforeOptimizer(optimizer))
        self._look_outside()
        self._notice_training_in_evaluation(optimizer)

    def about_to_compile(self) -> None:
        """The program is about to compile, and what it compiles must not hold functions of the agent."""
        self._outside.end()

    def _look_outside(self) -> None:
        if not watch.stays:
            self._outside.begin()

    @UPDATES.fence("looking at an update")
    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters."""
        if not self._left_out():
            self._facts.emit(events.BeforeUpdate(optimizer))

    @UPDATES.fence("looking at an update")
    def after_update(self, optimizer: Any) -> None:
        """It has updated them."""
        if not self._left_out():
            self._facts.emit(events.AfterUpdate(optimizer))

    @STEPS.fence("looking at the mode of a step")
    def _notice_training_in_evaluation(self, optimizer: Any) -> None:
        if self.writer.mode is ModeKeys.EVAL and self._had_pass:
            updated, step = ids_of(optimizer), self.writer.position.step
            for tracked in [one for one in self._saved if one.is_updated_in_evaluation(step, updated)]:
                self._models.follow_gradients(tracked)

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1 or is_compiling() or self._models.pass_opens_step():
                return original(tensors, *args, **kwargs)
            self._models.training_goes_on()
            if self._left_out():
                return original(tensors, *args, **kwargs)
            scale = self._before_backward(tensors)
            result = original(tensors, *args, **kwargs)
            self._had_pass = True
            self._after_pass()
            if scale is not None and not self._left_out():
                changed = self._gradients.after_backward(scale)
                if self._roles.is_waiting and changed:
                    self._save_doubtful(changed)
            return result

        return backward

    @fence("looking at a backward pass", STEPS)
    def _after_pass(self) -> None:
        self._facts.emit(events.AfterBackward())

    @fence("looking at a backward pass", STEPS)
    def _before_backward(self, tensors: Any) -> float | None:
        self._gradients.before_backward()
        self._facts.emit(events.BeforeBackward(tensors))
        scale = self._losses.before_backward(tensors)
        # Gradients need it whatever has become of the losses.
        return self._gradients.scale_behind(tensors) if scale is None else scale
