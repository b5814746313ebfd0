"""The facts of a training step, as PyTorch has them; see ``framework.training_facts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from smd_agent import session
from smd_agent.core.ports import StepWriter
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import WeightChanges
from smd_agent.pytorch.capture.kept_gradients import KeptGradients
from smd_agent.pytorch.capture.layer_modes import LayerModes
from smd_agent.pytorch.capture.looked_at import Parameters, Weights, digest_of, settings_of
from smd_agent.pytorch.capture.loss_inputs import LossInputs
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.unowned_parameters import UnownedParameters


class StepFacts:
    """The facts of one step that is saved.

    Args:
        models: those that are trained.
        writer: takes the values.
    """

    def __init__(self, models: TrainedModels, writer: StepWriter) -> None:
        self._updating = models.updating
        self._changes = WeightChanges(writer, models.roles, Weights())
        self._settings = OptimizerSettings(writer, models.roles)
        self._digests = InputDigests(writer, digest_of)
        self._parameters = ParameterFacts(writer, models.facts_told, Parameters())
        usage = Usage(writer, models.roles)
        self._unowned = UnownedParameters(usage, models.trained_params)
        self._kept = KeptGradients(usage)
        self._modes = LayerModes(usage)
        self._loss_inputs = LossInputs(usage, models.loss_guesses)

    def add_parameters(self, model: str, pairs: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Save the facts of a model's parameters, given with the names they are saved under."""
        self._changes.add_parameters(pairs, self._updating)
        self._parameters.add_parameters(model, pairs)
        self._kept.add_parameters(parameter for _, parameter in pairs)

    def before_call(self, name: str, model: torch.nn.Module | None, inputs: Any) -> None:
        """A model is about to be called."""
        self._digests.before_call(name, inputs)
        self._modes.before_call(name, model)

    def after_loss_function(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Any) -> None:
        """A functional loss has been computed of these arguments."""
        self._loss_inputs.look_at(function, args, kwargs, loss)

    def before_backward(self) -> None:
        """A backward pass is about to begin."""
        self._kept.before_backward()

    @session.fence("looking at gradients after a backward pass")
    def after_backward(self) -> None:
        """It is over."""
        self._kept.after_backward()

    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer is about to use gradients."""
        self._parameters.before_optimizer(optimizer)
        self._unowned.before_optimizer(optimizer)

    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters."""
        self._settings.save(optimizer, settings_of)
        self._changes.before_update(optimizer)

    def after_update(self, optimizer: Any) -> None:
        """It has updated them."""
        self._settings.save(optimizer, settings_of)
        self._changes.after_update(optimizer)
        self._kept.after_update(optimizer)

    def close(self) -> None:
        """The step ends."""
        self._parameters.close()
        self._kept.close()
        self._changes.close()
