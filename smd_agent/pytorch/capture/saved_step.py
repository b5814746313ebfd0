"""A step that is being saved: what is installed to see it, what belongs to it, and the events that come of that.

What is saved of it, ``step_probes`` says. All that is installed is removed when the step closes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from smd_agent.core.failure_domains import GIVEN, GRADIENTS, LOSS_FACTS, LOSSES, STEPS, UPDATES
from smd_agent.core.modes import ModeKeys
from smd_agent.framework import step_events as events
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture import functional_losses
from smd_agent.pytorch.capture.layer_values import ModuleValues
from smd_agent.pytorch.capture.model_calls import ModelCalls
from smd_agent.pytorch.capture.outside_calls import OutsideCalls
from smd_agent.pytorch.capture.persistent_hooks import watch
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.step_probes import StepProbes
from smd_agent.pytorch.capture.trained_losses import FunctionCall
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import apart, fence
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.plain_access import LossModule
from smd_agent.pytorch.torch_compile import has_compiled, is_compiling
from smd_agent.pytorch.tracing import graph_task, is_opaque


class SavedStep(CapturedStep):
    """One step that is being saved.

    Args:
        models: the models that are trained.

    Attributes:
        step: its number over all modes.
        called: the models that were called in it, from no other model.
        model_calls: runs them.
    """

    installed_class = Installed

    def __init__(self, models: TrainedModels) -> None:
        super().__init__(models.recorder)
        self._models = models
        self.step = models.recorder.position.step
        self.called: set[TrackedModule] = set()
        self._known: set[TrackedModule] = set()
        self._closed = False
        self._outside = OutsideCalls(models)
        self._probes = StepProbes(models, ModuleValues(self, models.roles, self._takes), self._titles_called)
        self.model_calls = ModelCalls(models, self._probes, self._probes.looks_at, self._add_model, self._takes)

    @apart
    def open(self) -> None:
        """Tell of the models and install what sees the rest."""
        for tracked in self._models.models_in_use():
            self._add_model(tracked)
        self.installed.patch(torch.autograd, "backward", self._wrap_backward, why="gradients and losses are saved")
        self._watch_gradients()
        self._probes.clipped.install(self.installed)
        self._probes.dropping.install(self.installed)
        self._watch_losses()
        watch.begin(self, amid=self._models.amid_training)
        self.installed.on_close(lambda: watch.end(self))
        self.installed.on_close(self._outside.end)
        if self.writer.mode is ModeKeys.EVAL:
            self._look_outside()

    @apart
    def close(self) -> None:
        """Remove everything that was installed."""
        self.installed.close()
        self._probes.emit(events.StepEnd())
        self._closed = True

    # What belongs to the step.

    def keep_called_models(self) -> None:
        """Read no gradients but those of the models that were called: the others may be another thread's."""
        self._probes.gradients.keep({id(parameter) for tracked in self.called for _, parameter in tracked.parameters()})

    def _add_model(self, tracked: TrackedModule) -> None:
        if tracked not in self._known:
            self._known.add(tracked)
            self._probes.emit(events.NewParameters(tracked.names.title, tracked, [*tracked.parameters()]))

    def _left_out(self) -> bool:
        # What another thread is in the middle of comes back to a step that is closed.
        return self._closed or self._outside.seen or self._models.left_out()

    def _takes(self) -> bool:
        """True if what modules are given is of this step, and new."""
        # Inside a backward pass it is the recomputation of an activation checkpoint: the values were saved before.
        return self.writer.position.saving and graph_task() == -1 and not self._left_out()

    def _titles_called(self) -> list[str]:
        return [tracked.names.title for tracked in self.called or self._models.models_in_use()]

    def _look_outside(self) -> None:
        if not watch.stays:
            self._outside.begin()

    @fence("saving a tensor that the script records", GIVEN)
    def save_recorded(self, name: str, tensor: torch.Tensor) -> None:
        """Save a tensor under the name that the script gives it; a loss has no other name then."""
        self._probes.emit(events.ValueGiven(name, tensor))

    # Losses.

    @LOSSES.fence("looking at losses")
    def _watch_losses(self) -> None:
        for loss in self._models.registered_losses:
            if not is_a(loss, LossModule):
                self._watch_registered(loss)
        # Code that is compiled in a step of training is guarded on what is in place there.
        in_training = self.writer.position.clock.mode is ModeKeys.TRAIN
        if not (in_training and has_compiled()):
            functional_losses.watch(self.installed, self._after_loss_function, self._after_loss_call)

    def _watch_registered(self, loss: torch.nn.Module) -> None:
        kind = type(loss)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            if "__call__" not in vars(kind):
                # What all modules have may be replaced in the meantime.
                @unseen
                def original(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
                    inherited: Any = super(kind, module)
                    return inherited.__call__(*args, **kwargs)

            def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
                result = original(module, *args, **kwargs)
                if module is loss:
                    self._after_registered(module, result)
                return result

            return call

        self.installed.patch(kind, "__call__", wrap, why="what loss modules return is saved")

    @fence("saving a loss", LOSSES)
    def _after_registered(self, module: torch.nn.Module, loss: Any) -> None:
        self._probes.emit(events.LossReturn(module, loss))

    @fence("saving a loss", LOSSES)
    def before_loss(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module of ``torch.nn`` is about to run."""
        if self._left_out() or is_opaque():
            return
        if not self._is_of_training(args, kwargs):
            self.model_calls.in_loss += 1
            self._probes.emit(events.LayerCall(type(module).__name__, module, args, kwargs))
        elif watch.listener is not None:
            watch.listener.before_loss(module, args, kwargs)

    def _is_of_training(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """True if a loss that is about to be computed is another step's: the training step's, which has waited."""
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in((args, kwargs))):
            self._models.training_goes_on()
        return watch.listener is not self

    @fence("saving a loss", LOSSES)
    def after_loss(self, module: torch.nn.Module, loss: Any) -> None:
        """The loss has run."""
        if self.model_calls.in_loss and not (self._left_out() or is_opaque()):
            self.model_calls.in_loss -= 1
            self._probes.emit(events.LossReturn(module, loss))

    @fence("saving a functional loss", LOSSES)
    def _after_loss_function(self, call: FunctionCall, loss: Any) -> None:
        # Inside of a loss module it is the module's.
        if not self.model_calls.in_loss and is_a(loss, torch.Tensor) and graph_task() == -1 and not is_opaque():
            self._probes.emit(events.LossReturn(call, loss))

    @fence("looking at what a loss is given", LOSS_FACTS)
    def _after_loss_call(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Any) -> None:
        if self.writer.position.step == self.step and not self._left_out():
            self._probes.emit(events.LossCall(function, args, kwargs, loss))

    # Gradients.

    @GRADIENTS.fence("looking at gradients")
    def _watch_gradients(self) -> None:
        self._probes.scales.install(self.installed, self._before_unscaling)
        if self._probes.gradients.wanted:
            why = "gradients that it returns are saved"
            self.installed.patch(torch.autograd, "grad", self._wrap_grad, why=why)

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1 or is_compiling() or self._models.pass_opens_step():
                return original(tensors, *args, **kwargs)
            self._models.training_goes_on()
            if self._left_out():
                return original(tensors, *args, **kwargs)
            self._before_backward(tensors)
            result = original(tensors, *args, **kwargs)
            self._after_backward()
            return result

        return backward

    @fence("looking at a backward pass", STEPS)
    def _before_backward(self, tensors: Any) -> None:
        self._probes.emit(events.BeforeBackward(tensors))

    @fence("looking at a backward pass", STEPS)
    def _after_backward(self) -> None:
        if not self._left_out():
            self._probes.emit(events.AfterBackward())

    def _wrap_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or graph_task() != -1:
                return original(outputs, inputs, *args, **kwargs)
            if not is_a(inputs, (torch.Tensor, list, tuple, GradientEdge)):
                # An iterator can be walked only once.
                inputs = tuple(inputs)
            result = original(outputs, inputs, *args, **kwargs)
            self._after_grad(outputs, inputs, result)
            return result

        return grad

    @fence("looking at autograd.grad", GRADIENTS)
    def _after_grad(self, outputs: Any, inputs: Any, gradients: Any) -> None:
        self._probes.emit(events.GradientsReturned(outputs, inputs, gradients))

    def _before_unscaling(self, optimizer: Any, scale: float) -> None:
        self._models.training_goes_on()
        self._probes.emit(events.BeforeUnscaling(optimizer, scale))

    # Optimizers.

    @STEPS.fence("looking at an optimizer")
    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer is about to use gradients."""
        self._models.training_goes_on()
        if watch.listener is not self:
            if watch.listener is not None:
                watch.listener.before_optimizer(optimizer)
            return
        if not self._left_out():
            self._probes.emit(events.BeforeOptimizer(optimizer))
            self._look_outside()

    def about_to_compile(self) -> None:
        """The program is about to compile, and what it compiles must not hold functions of the agent."""
        self._outside.end()

    @UPDATES.fence("looking at an update")
    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters."""
        if not self._left_out():
            self._probes.emit(events.BeforeUpdate(optimizer))

    @UPDATES.fence("looking at an update")
    def after_update(self, optimizer: Any) -> None:
        """The optimizer has updated them."""
        if not self._left_out():
            self._probes.emit(events.AfterUpdate(optimizer))
