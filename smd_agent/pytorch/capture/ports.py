"""Interface by which the capture of a PyTorch step asks for the models that are trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from smd_agent.core.ports import StepWriter
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.pytorch.capture.last_weights import LastWeights
from smd_agent.pytorch.capture.loss_names import LossNames
from smd_agent.pytorch.capture.trained_losses import TrainedLosses
from smd_agent.pytorch.model.tracked_module import TrackedModule


class TrainedModels(Protocol):
    """Knows the models that are trained, and what takes the values of their steps."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""

    @property
    def registered_losses(self) -> Sequence[torch.nn.Module]:
        """The modules that return a loss, because the user has said so."""

    @property
    def in_this_thread(self) -> bool:
        """True if the call that is captured is one of this thread."""

    @property
    def pass_opens_step(self) -> Callable[[], bool]:
        """Tells whether the next backward pass belongs to a step that is yet to be opened."""

    @property
    def amid_training(self) -> bool:
        """True if a training step waits for an evaluation to end."""

    def training_goes_on(self) -> None:
        """Something of the training step that waits for an evaluation to end comes up."""

    @property
    def roles(self) -> ParameterRoles:
        """Has the collections of parameters hold those that are trained."""

    @property
    def loss_names(self) -> LossNames:
        """Has the collection of losses hold nothing else."""

    def trained_params(self) -> set[int]:
        """Ids of the parameters of all models."""

    @property
    def facts_told(self) -> dict[str, str]:
        """The facts of the parameters that were saved last, by model."""

    @property
    def loss_guesses(self) -> LossGuesses:
        """The labels that losses were given so far."""

    @property
    def trained_losses(self) -> TrainedLosses:
        """The knowledge of the losses that are trained."""

    @property
    def last_weights(self) -> LastWeights:
        """Knows at the end whether weights are finite."""

    def models_in_use(self) -> list[TrackedModule]:
        """The models without those that have not been called for many steps."""

    def classes_trained(self) -> set[str]:
        """Names of the classes of the models."""

    def classes_gone(self) -> set[str]:
        """Names of the classes of those that the program has let go of."""

    def regexes_changed(self) -> bool:
        """True if a built-in collection has got regexes or names of the user's."""

    @property
    def left_out(self) -> Callable[[], bool]:
        """Tells whether what this thread computes is none of the step's."""
