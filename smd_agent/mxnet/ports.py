"""Interface by which the capture of a Gluon step asks the hook that it saves with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from mxnet.gluon import HybridBlock, Parameter
from mxnet.ndarray import NDArray

from smd_agent.core.ports import StepWriter
from smd_agent.framework.last_weights import LastWeights
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.mxnet.hybridized import GraphTap
from smd_agent.mxnet.loss_blocks import LossBlocks
from smd_agent.mxnet.step_counter import TrackedBlock


class TrainedBlocks(Protocol):
    """Knows the blocks that are trained, and what takes the values of their steps."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""

    @property
    def models(self) -> Sequence[TrackedBlock]:
        """The blocks whose calls open steps."""

    @property
    def owners(self) -> Sequence[TrackedBlock]:
        """Blocks around models of which only parts are called."""

    @property
    def losses(self) -> LossBlocks:
        """The blocks that return losses."""

    @property
    def roles(self) -> ParameterRoles:
        """Has the collections of parameters hold those that are trained."""

    @property
    def facts_told(self) -> dict[str, str]:
        """The facts that were told last of the parameters of each block, by its title."""

    @property
    def loss_guesses(self) -> LossGuesses:
        """The labels that losses were given so far."""

    @property
    def last_weights(self) -> LastWeights[NDArray]:
        """Takes weights that are looked at when the program ends."""

    @property
    def taps(self) -> WeakIdentityMap[HybridBlock, GraphTap]:
        """The taps of hybridized blocks that have been made so far."""

    def parameters(self) -> list[tuple[str, Parameter]]:
        """All parameters, each once, with the names they are saved under."""

    def trained_parameters(self) -> Iterable[Parameter]:
        """The parameters of all blocks."""

    def training_goes_on(self) -> None:
        """Something of the training step that waits for an evaluation to end comes up."""

    def may_want_inside(self, block: HybridBlock) -> bool:
        """True if the current step may save something from inside of a block."""

    def may_want_tensors(self) -> bool:
        """True if the current step may save others than those of its facts."""

    def may_want_inputs(self) -> bool:
        """True if the current step may save the input of a block."""
