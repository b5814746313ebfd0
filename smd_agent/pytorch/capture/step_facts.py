"""The facts of a training step, as PyTorch has them; see ``framework.training_facts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from smd_agent.core.domains import PARAMETERS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import WeightChanges
from smd_agent.pytorch.capture import model_inputs, sequence_layers
from smd_agent.pytorch.capture.discarded_gradients import DiscardedGradients
from smd_agent.pytorch.capture.kept_gradients import KeptGradients
from smd_agent.pytorch.capture.layer_modes import LayerModes
from smd_agent.pytorch.capture.looked_at import Parameters, Weights, digest_of, settings_of
from smd_agent.pytorch.capture.loss_inputs import LossInputs
from smd_agent.pytorch.capture.loss_targets import LossTargets
from smd_agent.pytorch.capture.model_inputs import ModelInputs
from smd_agent.pytorch.capture.own_losses import OwnLosses
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.sequence_layers import SequenceLayers
from smd_agent.pytorch.capture.unowned_parameters import UnownedParameters
from smd_agent.pytorch.capture.unregistered_parameters import left_untrained
from smd_agent.pytorch.model.partial_loads import partial_loads
from smd_agent.pytorch.model.step_counter import TrackedModule
from smd_agent.pytorch.tracing import apart


class StepFacts:
    """The facts of one step that is saved.

    Args:
        models: those that are trained.
        writer: takes the values.
    """

    def __init__(self, models: TrainedModels, writer: StepWriter) -> None:
        self._writer = writer
        self._updating = models.updating
        self._trained_params = models.trained_params
        self._changes = WeightChanges(writer, models.roles, Weights())
        self._settings = OptimizerSettings(writer, models.roles)
        self._digests = InputDigests(writer, digest_of)
        self._parameters = ParameterFacts(writer, models.facts_told, Parameters())
        usage = Usage(writer, models.roles)
        self._unowned = UnownedParameters(usage, models.trained_params)
        self._kept = KeptGradients(usage)
        self._discarded = DiscardedGradients(usage)
        self._modes = LayerModes(usage)
        self._loss_inputs = LossInputs(usage, models.loss_guesses)
        self._own_losses = OwnLosses(usage)
        self._loss_targets = LossTargets(usage)
        self._inputs = ModelInputs(usage)
        self._sequences = SequenceLayers(usage)
        self._wants_layers = usage.wanted

    def add_parameters(self, model: TrackedModule, pairs: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Save the facts of a model's parameters, given with the names they are saved under."""
        self._changes.add_parameters(pairs, self._updating)
        self._add_to_known(model, pairs)
        self._kept.add_parameters(parameter for _, parameter in pairs)
        self._discarded.add_parameters(parameter for _, parameter in pairs)

    @PARAMETERS.fence("looking at a model's parameters")
    def _add_to_known(self, model: TrackedModule, pairs: Sequence[tuple[str, torch.Tensor]]) -> None:
        if self._parameters.wanted:
            untrained = left_untrained(model, self._trained_params)
            self._parameters.add_parameters(model.title, pairs, untrained)

    def before_call(
        self, name: str, model: torch.nn.Module | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """A model is about to be called."""
        inputs = args, kwargs
        self._digests.before_call(name, inputs)
        self._modes.before_call(name, model)
        self._inputs.before_call(name, inputs)
        self._loss_targets.before_call(inputs)
        self._sequences.before_call(inputs)
        if model is not None:
            self.before_layer(name, model, args, kwargs)

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """Whether something is saved of how a layer is called."""
        return self._wants_layers and (model_inputs.looks_at(layer) or sequence_layers.looks_at(layer))

    def before_layer(self, name: str, layer: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A layer of a model is about to be called, or a model that may be one itself."""
        if self._wants_layers:
            self._inputs.before_layer(layer, (args, kwargs))
            self._sequences.before_layer(name, layer, args, kwargs)

    def after_call(self, name: str) -> None:
        """A model has returned."""
        self._inputs.after_call(name)

    def after_loss_function(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Any) -> None:
        """A functional loss has been computed of these arguments."""
        self._loss_inputs.look_at(function, args, kwargs, loss)
        self._loss_targets.look_at(function, args, kwargs)

    def before_backward(self, tensors: Any) -> None:
        """A backward pass is about to begin, from these tensors."""
        self._own_losses.before_backward(tensors)
        self._kept.before_backward()
        self._discarded.before_backward()

    @apart
    def after_backward(self) -> None:
        """It is over."""
        self._kept.after_backward()
        self._discarded.after_backward()

    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer is about to use gradients."""
        self._parameters.before_optimizer(optimizer)
        self._unowned.before_optimizer(optimizer)
        self._discarded.before_optimizer(optimizer)

    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters."""
        self._settings.save(optimizer, settings_of)
        self._changes.before_update(optimizer)

    def after_update(self, optimizer: Any) -> None:
        """It has updated them."""
        self._settings.save(optimizer, settings_of)
        self._changes.after_update(optimizer)
        self._kept.after_update(optimizer)
        self._discarded.after_update()

    def close(self) -> None:
        """The step ends."""
        PARAMETERS.run("looking at what a module has loaded", lambda: partial_loads.save(self._writer))
        self._parameters.close()
        self._kept.close()
        self._discarded.close()
        self._inputs.close()
        self._loss_targets.close()
        self._changes.close()
