"""The probes of a PyTorch step: all that is saved of it, in the order in which events come to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch

from smd_agent.core.failure_domains import PARAMETERS, SETTINGS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.discarded_gradients import DiscardedGradients
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.kept_gradients import KeptGradients
from smd_agent.framework.monitored_metrics import MonitoredMetrics
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import BeforeUpdate, Probe, Probes, StepEnd, on
from smd_agent.framework.unowned_parameters import UnownedParameters
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import WeightChanges
from smd_agent.pytorch.capture import fact_adapters
from smd_agent.pytorch.capture.attended_padding import AttendedPadding
from smd_agent.pytorch.capture.broadcast_losses import OwnLosses
from smd_agent.pytorch.capture.channel_axes import Channels
from smd_agent.pytorch.capture.clipped_gradients import ClippedGradients
from smd_agent.pytorch.capture.gradients import Gradients
from smd_agent.pytorch.capture.idle_adapters import IdleAdapters
from smd_agent.pytorch.capture.last_steps import LastSteps
from smd_agent.pytorch.capture.lasting_dropout import LastingDropout
from smd_agent.pytorch.capture.latent_divergence import LatentDivergence
from smd_agent.pytorch.capture.layer_modes import LayerModes
from smd_agent.pytorch.capture.layer_values import Layers, ModuleValues
from smd_agent.pytorch.capture.loss_graph import KnownLosses
from smd_agent.pytorch.capture.loss_inputs import LossInputs
from smd_agent.pytorch.capture.loss_outputs import LossOutputs
from smd_agent.pytorch.capture.loss_scaling import Scales
from smd_agent.pytorch.capture.loss_targets import LossTargets
from smd_agent.pytorch.capture.losses import Losses
from smd_agent.pytorch.capture.model_inputs import ModelInputs
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.scaler_facts import ScalerFacts
from smd_agent.pytorch.capture.schedule_facts import ScheduleFacts
from smd_agent.pytorch.capture.sequence_layers import SequenceLayers
from smd_agent.pytorch.capture.trained_parameters import TrainedRoles
from smd_agent.pytorch.capture.unregistered_parameters import left_untrained
from smd_agent.pytorch.capture.weights import Weights
from smd_agent.pytorch.capture.written_attention import WrittenAttention
from smd_agent.pytorch.model.partial_loads import partial_loads
from smd_agent.pytorch.model.train_or_eval import TrainedInEvaluation
from smd_agent.pytorch.optimizer_watch import updates


class StepProbes(Probes):
    """The probes of one step that is saved.

    Args:
        models: those that are trained.
        values: takes the inputs and outputs of modules.
        called: gives the titles of the models that were called in the step.

    Attributes:
        scales: of the losses.
        gradients, clipped, dropping: three of the probes.
    """

    def __init__(self, models: TrainedModels, values: ModuleValues, called: Callable[[], Iterable[str]]) -> None:
        writer = models.recorder
        # Else it saves nothing but facts.
        wanted = bool(writer.collections_due() - facts.COLLECTIONS.keys()) or models.regexes_changed()
        scaler_facts, known = ScalerFacts(writer), KnownLosses()
        self.scales = Scales(scaler_facts)
        self.gradients = Gradients(writer, self.scales, wanted)
        usage = Usage(writer, models.roles, models.facts_told)
        self.clipped = ClippedGradients(usage)
        self.dropping = LastingDropout(usage, lambda: models.in_this_thread)
        roles = TrainedRoles(models.roles)
        self._of_layers = ModelInputs(usage), SequenceLayers(usage), LastSteps(usage), AttendedPadding(usage)
        super().__init__(
            (
                scaler_facts,
                self.gradients,
                Channels(writer),
                # An output is known for a loss before it is saved, and before losses are looked for in it.
                LossOutputs(models.loss_names, values, known),
                Layers(values, wanted),
                Losses(models, values, known, self.scales, called),
                *self._facts(models, usage),
                # Weights are saved by their roles, and those that are trained after all once their gradients are known.
                roles,
                Weights(writer, roles, self.gradients, wanted),
                models.last_weights,
            )
        )

    def _facts(self, models: TrainedModels, usage: Usage) -> Iterator[Probe]:
        """The facts of a training step, as PyTorch has them; see ``framework.training_facts``."""
        writer, roles, trained = models.recorder, models.roles, models.trained_params
        parameters, gradients = fact_adapters.Parameters(), fact_adapters.Gradients()
        yield _Settings(writer, roles, fact_adapters.settings_of)
        yield WeightChanges(writer, roles, fact_adapters.Weights(), updates.in_progress)
        idle = IdleAdapters()
        yield ParameterFacts(
            writer, models.facts_told, parameters, lambda model: left_untrained(model, trained), is_idle=idle.has
        )
        yield _PartialLoads(writer)
        yield InputDigests(writer, fact_adapters.digest_of)
        yield LayerModes(usage)
        yield MonitoredMetrics(usage)
        yield from self._of_layers
        yield LossInputs(usage, models.loss_guesses)
        yield LossTargets(usage)
        yield OwnLosses(usage)
        yield WrittenAttention(usage)
        yield LatentDivergence(usage)
        yield KeptGradients(usage, gradients)
        yield UnownedParameters(usage, parameters, trained)
        yield DiscardedGradients(usage, gradients)
        yield self.clipped
        yield self.dropping
        yield ScheduleFacts(usage)
        yield TrainedInEvaluation(writer)

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is saved of how a layer is called, beside its inputs and outputs."""
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
