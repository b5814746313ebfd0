"""Inputs and outputs of blocks in a saved step, and arrays that the program gives by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mxnet import autograd

from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.step_events import LayerCall, LayerReturn, Probe, ValueGiven, on
from smd_agent.mxnet.arrays import arrays_in, copied
from smd_agent.mxnet.ports import TrainedBlocks


class Layers(Probe, domain=LAYERS, doing="saving a block's inputs and outputs"):
    """The inputs and outputs of one step.

    Args:
        blocks: those that are trained.
        step: numbers and saves them.
    """

    def __init__(self, blocks: TrainedBlocks, step: CapturedStep) -> None:
        self.wanted = blocks.may_want_tensors()
        self._losses = blocks.losses
        self._step = step
        self._inputs_due = blocks.may_want_inputs()
        # Of the calls that run, by the ids of their keyword arguments.
        self._held: dict[int, list[Any]] = {}

    @on(LayerCall, doing="keeping a block's inputs")
    def before_block(self, call: LayerCall) -> None:
        """Copy what a block is given, if it could overwrite it."""
        # Blocks may share one name (model zoo: ``prefix=""``), and the old library numbers their inputs in the order in
        # which the blocks return. While autograd records, nothing can overwrite an input meanwhile.
        self._held.pop(id(call.kwargs), None)
        if self._inputs_due and not autograd.is_recording():
            self._held[id(call.kwargs)] = [copied(array) for array in arrays_in((call.args, call.kwargs))]

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """Save what a block was given and has returned."""
        name = self._losses.known_name(call.layer) or call.name
        held = self._held.pop(id(call.inputs[1]), None)
        self._save(f"{name}_input", arrays_in(call.inputs) if held is None else held)
        self._save(f"{name}_output", arrays_in(call.outputs))

    @on(ValueGiven)
    def save_given(self, given: ValueGiven) -> None:
        """Save what the program gives as if a block of that name had returned it."""
        self._save(f"{given.name}_output", arrays_in(given.value))

    def _save(self, base: str, arrays: Iterable[Any]) -> None:
        self._step.save_numbered(base, arrays)
