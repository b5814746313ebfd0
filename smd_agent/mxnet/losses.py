"""Losses of a saved step: what Gluon's loss blocks return, and otherwise the array that ``backward`` starts from."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

from mxnet.gluon import Block
from mxnet.ndarray import NDArray

from smd_agent.core.failure_domains import LOSSES
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.step_events import (
    BeforeBackward,
    LayerReturn,
    LossCall,
    OutsideReturn,
    Probe,
    StepEnd,
    on,
)
from smd_agent.mxnet.arrays import arrays_in
from smd_agent.mxnet.hybridized import is_active, operation_of
from smd_agent.mxnet.loss_graph import KnownLosses, is_same_loss
from smd_agent.mxnet.plain_access import name_of
from smd_agent.mxnet.ports import TrainedBlocks

# Gluon would call the first block of a class ``Loss`` like this, and the losses' regex asks for such a name.
UNNAMED_LOSS = "loss0"

# Results kept to find the block that a backward pass starts from; a teacher's are among them.
_KEPT = 8


class Losses(Probe, domain=LOSSES, doing="remembering a loss"):
    """The losses of one step.

    Args:
        blocks: those that are trained.
        step: numbers and saves tensors.
    """

    def __init__(self, blocks: TrainedBlocks, step: CapturedStep) -> None:
        self._blocks = blocks
        self._step = step
        self._known = KnownLosses()
        # What blocks have returned that nobody watches, the latest last.
        self._returned: deque[tuple[NDArray, weakref.ref[Block]]] = deque(maxlen=_KEPT)

    @on(OutsideReturn)
    def after_outside(self, call: OutsideReturn) -> None:
        """Keep what may be a loss."""
        self._returned.append((call.outputs, weakref.ref(call.layer)))

    @on(LossCall)
    def after_loss(self, call: LossCall) -> None:
        """Remember what a loss block has returned, and name it; ``Layers`` saves it."""
        self._add(call.value)
        self._name(call.loss, call.value)

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """Remember the losses that blocks inside of a hybridized one have returned."""
        tap = self._blocks.taps.get(call.layer)
        if tap is not None and is_active(call.layer) and tap.original is operation_of(call.layer):
            self._add(tap.losses_in(call.outputs))

    @on(BeforeBackward, doing="saving the loss of a backward pass")
    def before_backward(self, backward: BeforeBackward) -> None:
        """Save what a backward pass starts from and no loss block has returned."""
        for array in arrays_in(backward.tensors):
            if self._known.knows(array):
                continue
            name, loss = UNNAMED_LOSS, array
            found = self._block_behind(array)
            if found is not None:
                loss, block = found
                self._blocks.losses.add(block)
                name = self._name(block, loss)
            self._known.add(loss)
            self._step.save_numbered(f"{name}_output", arrays_in(loss))

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of what was kept."""
        self._returned.clear()

    def _add(self, loss: Any) -> None:
        for array in arrays_in(loss):
            self._known.add(array)

    def _name(self, block: Block, result: Any) -> str:
        """The name of a loss block; what it has returned is put into the losses."""
        losses, step = self._blocks.losses, self._step.writer.position.step
        models = [tracked.model for tracked in self._blocks.models if tracked.last == step]
        name = losses.name(block, tuple(name_of(model) for model in models if model is not None))
        first = self._step.counts.get(f"{name}_output", 0)
        losses.put_in_losses([f"{name}_output_{first + i}" for i, _ in enumerate(arrays_in(result))])
        return name

    def _block_behind(self, head: NDArray) -> tuple[NDArray, Block] | None:
        """The block, with what it has returned, from whose result a backward pass starts; it is a loss."""
        for result, reference in reversed(self._returned):
            block = reference()
            if block is not None and is_same_loss(head, result):
                return result, block
        return None
