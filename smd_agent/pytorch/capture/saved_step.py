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
from torch.nn.parameter import UninitializedParameter

from smd_agent import session
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture.gradients import Gradients
from smd_agent.pytorch.capture.losses import Losses
from smd_agent.pytorch.capture.persistent_hooks import LossModule, watch
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.compiled.compiled_layers import CompiledLayers
from smd_agent.pytorch.compiled.layer_source import LayerSource
from smd_agent.pytorch.compiled.unwatchable_layers import unwatchable_layers
from smd_agent.pytorch.model.step_counter import StepCounter, TrackedModule
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.tracing import graph_task, is_compiling

_OWN_COLLECTIONS = {"weights", "biases", "gradients", "losses"}


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
        self._late: dict[TrackedModule, list[tuple[str, torch.nn.Parameter]]] = {}
        self._gradients = Gradients(self.writer)
        self._losses = Losses(models, self._gradients.scales, self.save_io)
        self._compiled: LayerSource = CompiledLayers(self.save_io)
        self._every_layer = bool(self.writer.collections_due() - _OWN_COLLECTIONS) or models.regexes_changed()

    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        for tracked in self._models.models_in_use():
            self.save_weights(tracked)
        self.installed.patch(torch.autograd, "backward", self._wrap_backward, why="gradients and losses are saved")
        self._gradients.install(self.installed)
        self._losses.install(self.installed)
        watch.begin(self)
        self.installed.on_close(watch.end)

    def close(self) -> None:
        """Remove everything that was installed."""
        self.installed.close()
        self._gradients.close()
        self._closed = True

    def keep_called_models(self) -> None:
        """Read no gradients but those of the models that were called: the others may be another thread's."""
        self._gradients.keep({id(parameter) for tracked in self.called for _, parameter in tracked.parameters()})

    def _left_out(self) -> bool:
        # What another thread is in the middle of comes back to a step that is closed.
        return self._closed or self._models.left_out()

    def save_weights(self, tracked: TrackedModule) -> None:
        """Save a model's parameters, once a step."""
        if tracked not in self._saved:
            self._saved.add(tracked)
            pairs = list(tracked.parameters())
            self._gradients.add_parameters(pairs)
            self._late[tracked] = [pair for pair in pairs if not _has_values(pair[1])]
            self._write([pair for pair in pairs if _has_values(pair[1])])

    def _save_late_weights(self, tracked: TrackedModule) -> None:
        """Save parameters that had no values before the forward."""
        late = self._late.get(tracked)
        if late:
            self._write([pair for pair in late if _has_values(pair[1])])
            self._late[tracked] = []

    def _write(self, pairs: list[tuple[str, torch.nn.Parameter]]) -> None:
        self.writer.save_tensors([name for name, _ in pairs], [parameter for _, parameter in pairs])

    # Forward.

    def forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward with its layers watched."""
        tracked = call.tracked
        watched = Installed()
        is_loss = isinstance(tracked.model, LossModule)
        # Where a loss module is just being found to be a model too, it is captured as a loss already.
        name = None if is_loss and self._losses.in_module else call.name
        tracked.busy = True
        self._losses.in_module += is_loss
        try:
            run = self._before_forward(call, name, args, kwargs, watched) or call.forward
            output = run(*args, **kwargs)
            self._after_forward(tracked, name, output)
            return output
        finally:
            tracked.busy = False
            self._losses.in_module -= is_loss
            watched.close()

    @session.fence("preparing to save a model's layers")
    def _before_forward(
        self, call: StepCounter, name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any], watched: Installed
    ) -> Callable[..., Any]:
        tracked = call.tracked
        self.save_weights(tracked)
        if name is not None:
            self.save_io(name, "input", (args, kwargs))
        wants = self.writer.wants
        layers = [pair for pair in tracked.layers() if self._every_layer or wants(f"{pair[0]}_output_0")]
        if layers:
            hidden = unwatchable_layers(tracked)
            for layer_name, layer in layers:
                if layer not in hidden.layers:
                    self._watch_layer(layer_name, layer, watched)
            if hidden.regions:
                return self._compiled.watch(call, hidden.regions, layers, watched)
        return call.forward

    @session.fence("saving what a model returns")
    def _after_forward(self, tracked: TrackedModule, name: str | None, output: Any) -> None:
        self._save_late_weights(tracked)
        if name is not None:
            self.save_io(name, "output", output)
            if isinstance(tracked.model, LossModule) or self._models.is_loss(f"{name}_output_0"):
                self._losses.is_saved(output)
        self._losses.after_model(output)

    def _watch_layer(self, name: str, layer: torch.nn.Module, watched: Installed) -> None:
        # Another thread may run the same model at the same time, in no step.
        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            if self._models.in_this_thread:
                self.save_io(name, "input", (args, kwargs))

        def after(module: torch.nn.Module, args: Any, output: Any) -> None:
            if self._models.in_this_thread:
                self.save_io(name, "output", output)

        watched.on_close(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
        watched.on_close(layer.register_forward_hook(after).remove)

    @session.fence("saving a module's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the tensors of a module's input or output, numbered over the whole step."""
        # Inside a backward pass this is the recomputation of an activation checkpoint: the values were saved before.
        if not self.writer.position.saving or graph_task() != -1 or self._left_out():
            return
        self.save_numbered(f"{name}_{kind}", tensors_in(value))

    # Losses, backward passes and optimizers.

    def before_loss(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module of ``torch.nn`` is about to run."""
        if not self._left_out():
            self._losses.before_module(module, args, kwargs)

    def after_loss(self, module: torch.nn.Module, loss: Any) -> None:
        """It has run."""
        if not self._left_out():
            self._losses.after_module(module, loss)

    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer is about to use gradients."""
        if self._left_out():
            return
        self._gradients.before_optimizer(optimizer)
        self._notice_training_in_evaluation(optimizer)

    @session.fence("looking at the mode of a step")
    def _notice_training_in_evaluation(self, optimizer: Any) -> None:
        if self.writer.mode is not ModeKeys.EVAL or not self._had_pass:
            return
        updated = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        for tracked in self._saved:
            called = (
                tracked.last == self.writer.position.step and tracked.model is not None and not tracked.model.training
            )
            if (
                called
                and not tracked.by_gradients
                and any(id(parameter) in updated for _, parameter in tracked.parameters())
            ):
                self._models.follow_gradients(tracked)

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if graph_task() != -1 or is_compiling() or self._models.pass_opens_step() or self._left_out():
                return original(tensors, *args, **kwargs)
            scale = self._before_backward(tensors)
            result = original(tensors, *args, **kwargs)
            self._had_pass = True
            if scale is not None and not self._left_out():
                self._gradients.after_backward(scale)
            return result

        return backward

    @session.fence("looking at a backward pass")
    def _before_backward(self, tensors: Any) -> float:
        self._gradients.before_backward()
        return self._losses.before_backward(tensors)


def _has_values(parameter: torch.Tensor) -> bool:
    return not isinstance(parameter, UninitializedParameter)
