"""The facts of a training step, as PyTorch has them; see ``framework.training_facts``."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.domains import PARAMETERS, SETTINGS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import BeforeUpdate, LayerCall, ModelCall, Probe, Probes, StepEnd, on
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import WeightChanges
from smd_agent.pytorch.capture.discarded_gradients import DiscardedGradients
from smd_agent.pytorch.capture.fact_adapters import Parameters, Weights, digest_of, settings_of
from smd_agent.pytorch.capture.kept_gradients import KeptGradients
from smd_agent.pytorch.capture.layer_modes import LayerModes
from smd_agent.pytorch.capture.loss_inputs import LossInputs
from smd_agent.pytorch.capture.loss_targets import LossTargets
from smd_agent.pytorch.capture.model_inputs import ModelInputs
from smd_agent.pytorch.capture.own_losses import OwnLosses
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.sequence_layers import SequenceLayers
from smd_agent.pytorch.capture.unowned_parameters import UnownedParameters
from smd_agent.pytorch.capture.unregistered_parameters import left_untrained
from smd_agent.pytorch.model.partial_loads import partial_loads


class StepFacts(Probes):
    """The facts of one step that is saved.

    Args:
        models: those that are trained.
        writer: takes the values.
    """

    def __init__(self, models: TrainedModels, writer: StepWriter) -> None:
        roles, usage, trained = models.roles, Usage(writer, models.roles), models.trained_params
        self._of_layers = ModelInputs(usage), SequenceLayers(usage)
        super().__init__(
            (
                _Settings(writer, roles, settings_of),
                WeightChanges(writer, roles, Weights(), models.updating),
                ParameterFacts(writer, models.facts_told, Parameters(), lambda model: left_untrained(model, trained)),
                _PartialLoads(writer),
                InputDigests(writer, digest_of),
                LayerModes(usage),
                *self._of_layers,
                LossInputs(usage, models.loss_guesses),
                LossTargets(usage),
                OwnLosses(usage),
                KeptGradients(usage),
                UnownedParameters(usage, trained),
                DiscardedGradients(usage),
            )
        )

    def before_call(self, name: str, model: torch.nn.Module | None, args: tuple[Any, ...], kwargs: Any) -> None:
        """Tell of a model that is about to be called, and that may be a layer itself."""
        self.emit(ModelCall(name, model, (args, kwargs)))
        if model is not None:
            self.emit(LayerCall(name, model, args, kwargs))

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """Whether something is saved of how a layer is called."""
        return any(probe.looks_at(layer) for probe in self._of_layers)


class _Settings(OptimizerSettings, domain=SETTINGS, doing="looking at the settings of an optimizer"):
    """Settings of optimizers, as they are before an update where that is seen to begin, else after it."""

    @on(BeforeUpdate)
    def save_before(self, update: BeforeUpdate) -> None:
        """Save those that the update is going to use."""
        self.save(update)


class _PartialLoads(Probe, domain=PARAMETERS, doing="looking at what a module has loaded"):
    """Loads that gave a module next to nothing."""

    def __init__(self, writer: StepWriter) -> None:
        self._writer = writer

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save those that no step has told of."""
        partial_loads.save(self._writer)
