"""The probes of a step of Gluon: all that is saved of it, in the order in which events come to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.gluon import Parameter

from smd_agent import guard
from smd_agent.core.failure_domains import UPDATES
from smd_agent.framework import training_facts as facts
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.discarded_gradients import DiscardedGradients
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.kept_gradients import KeptGradients
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import NewParameters, Probes, on
from smd_agent.framework.unowned_parameters import UnownedParameters
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import WeightChanges
from smd_agent.mxnet import fact_adapters
from smd_agent.mxnet.averaged_losses import AveragedLosses
from smd_agent.mxnet.channel_axes import Channels
from smd_agent.mxnet.gradients import Gradients
from smd_agent.mxnet.layer_modes import LayerModes
from smd_agent.mxnet.layers import Layers
from smd_agent.mxnet.loss_inputs import LossInputs
from smd_agent.mxnet.loss_targets import LossTargets
from smd_agent.mxnet.losses import Losses
from smd_agent.mxnet.lost_loads import LostLoads
from smd_agent.mxnet.model_inputs import ModelInputs
from smd_agent.mxnet.partial_loads import NothingGiven
from smd_agent.mxnet.plain_access import is_sparse, parameters_of
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.reached_parameters import has_unused_gradient
from smd_agent.mxnet.sequence_layers import SequenceLayers
from smd_agent.mxnet.trainer_settings import TrainerSettings
from smd_agent.mxnet.unregistered_parameters import UnregisteredParameters
from smd_agent.mxnet.weights import Weights


class StepProbes(Probes):
    """The probes of one step that is saved.

    Args:
        blocks: those that are trained.
        step: numbers and saves tensors.
        has_gradient: tells whether a backward pass of this step has reached a parameter.
    """

    def __init__(self, blocks: TrainedBlocks, step: CapturedStep, has_gradient: Callable[[Parameter], bool]) -> None:
        writer, roles = blocks.recorder, blocks.roles
        usage, trainers = (
            Usage(writer, roles, blocks.facts_told),
            TrainerSettings(lambda trainer: _is_over(trainer, blocks)),
        )
        settings = OptimizerSettings(writer, roles, trainers.settings_of, trainers.title_of)
        unregistered = UnregisteredParameters(lambda: {*map(id, blocks.trained_parameters())}, fact_adapters.version_of)
        parameters = fact_adapters.Parameters(
            trainers.title_of, lambda one: has_gradient(one) or unregistered.have_gradient(one)
        )
        # A backward pass of the step has reached them, or those of no block that is known one before an update.
        of_trainers = fact_adapters.Parameters(
            trainers.title_of, lambda one: has_gradient(one) or has_unused_gradient(one)
        )
        gradients = fact_adapters.Gradients(trainers.title_of)
        self._trainers = trainers if settings.wanted else None
        super().__init__(
            (
                Losses(blocks, step),
                Gradients(writer, blocks.may_want_tensors()),
                Weights(blocks),
                Channels(writer),
                settings,
                _Updates(writer, roles, fact_adapters.Weights()),
                ParameterFacts(writer, blocks.facts_told, parameters, unregistered.of_model),
                UnownedParameters(usage, of_trainers, lambda: {*map(id, blocks.trained_parameters())}),
                KeptGradients(usage, gradients),
                DiscardedGradients(usage, gradients),
                AveragedLosses(usage, trainers.title_of),
                LostLoads(usage),
                NothingGiven(writer),
                InputDigests(writer, fact_adapters.digest_of),
                ModelInputs(usage),
                LayerModes(usage),
                SequenceLayers(usage),
                LossInputs(usage, blocks.loss_guesses),
                LossTargets(usage),
                # The name of a loss is known by then.
                Layers(blocks, step),
            )
        )

    def listen(self, trainer: Any) -> Callable[[], object] | None:
        """Overhear what a Trainer uses in its update, if that is saved; the result is to be called when it returns."""
        return None if self._trainers is None else self._trainers.before_update(trainer)


class _Updates(WeightChanges, domain=UPDATES, doing="looking at weights around an update"):
    """Updates of parameters, of which sparse ones are not looked at."""

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Save the updates of these too."""
        super().add_parameters(new)
        for name, parameter in new.pairs:
            # Where its weights are asked for too, that line says it.
            if is_sparse(parameter) and not self._writer.wants(name):
                line = f"{facts.UPDATE}{name} is not saved: {name} is a sparse parameter"
                guard.say_once(("sparse update", name), line)


def _is_over(trainer: Any, blocks: TrainedBlocks) -> bool:
    # It lives on with its parameters until the garbage collector runs.
    return {id(parameter) for parameter in blocks.trained_parameters()}.isdisjoint(map(id, parameters_of(trainer)))
