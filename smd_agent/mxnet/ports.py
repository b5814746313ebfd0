"""What the capture of a Gluon step asks of the hook that it saves with."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Protocol

from mxnet.gluon import Block, HybridBlock, Parameter

from smd_agent.core.ports import StepWriter
from smd_agent.mxnet.hybridized import GraphTap
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
    def registered_losses(self) -> Sequence[Block]:
        """The blocks that return a loss, because the user has said so."""

    @property
    def taps(self) -> MutableMapping[HybridBlock, GraphTap]:
        """The taps of hybridized blocks that have been made so far."""

    def parameters(self, tracked: TrackedBlock) -> list[tuple[str, Parameter]]:
        """A block's parameters with the names they are saved under."""

    def may_want_inside(self, block: HybridBlock) -> bool:
        """Whether the current step may save something from inside of a block."""

    def may_want_inputs(self) -> bool:
        """Whether the current step may save the input of a block."""
