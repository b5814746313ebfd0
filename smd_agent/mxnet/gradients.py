"""Gradients of a saved step: which of them belong to it, and when they are read.

Of a parameter that a Trainer owns: what the Trainer is about to apply, that is after it has summed over the contexts
and workers, and after the script has clipped; before the division by the batch size, which the optimizer does itself.
If no Trainer has applied it by the end of the step (accumulation): as it stands then.
Of any other parameter: as it stands when ``backward`` returns, the last time if several passes of the step reach it.
In each case only if a backward pass of this step has reached the parameter; buffers keep old values otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.core.failure_domains import GRADIENTS
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import Deferred, StepWriter
from smd_agent.framework.plain_access import attribute
from smd_agent.framework.step_events import AfterBackward, BeforeOptimizer, Probe, StepEnd, on
from smd_agent.mxnet.arrays import to_array
from smd_agent.mxnet.plain_access import gradients_of, is_sparse, trainer_of, updates_on_store, values_of
from smd_agent.mxnet.reached_parameters import Pair

_WITHOUT_GRADIENTS = (ModeKeys.EVAL, ModeKeys.PREDICT)


class Gradients(Probe, domain=GRADIENTS, doing="saving gradients"):
    """The gradients of one step.

    Args:
        writer: takes them.
        wanted: whether the step may save any.
    """

    def __init__(self, writer: StepWriter, wanted: bool) -> None:
        self.wanted = wanted
        self._writer = writer
        self._waiting: dict[int, Pair] = {}
        self._applied: set[int] = set()
        self._written: set[int] = set()

    @on(AfterBackward, doing="saving gradients after a backward pass")
    def after_backward(self, backward: AfterBackward) -> None:
        """Take in what a backward pass has reached, and save what no Trainer will apply."""
        found = [pair for pair in backward.reached if id(pair[1]) not in self._applied]
        self._waiting.update((id(pair[1]), pair) for pair in found)
        self._write(pair for pair in found if trainer_of(pair[1]) is None and len(values_of(pair[1])) <= 1)
        # A sparse parameter shows no state.
        is_known = any(not is_sparse(parameter) for _, parameter in backward.reached)
        mode = self._writer.mode
        if is_known and mode in _WITHOUT_GRADIENTS and self._writer.ever_saves("gradients"):
            line = f"gradients of a backward pass in a step of mode {mode.name} are not saved"
            guard.say_once(("gradients", mode), line)

    @on(BeforeOptimizer, doing="saving the gradients that a Trainer applies")
    def before_update(self, use: BeforeOptimizer) -> None:
        """Save what a Trainer is about to apply."""
        trainer = use.optimizer
        pairs = [pair for pair in self._waiting.values() if trainer_of(pair[1]) is trainer]
        self._applied.update(id(parameter) for _, parameter in pairs)
        # Where no store updates, all contexts hold the sum already.
        self._write(pairs, not updates_on_store(trainer), _loss_scale(trainer))

    @on(StepEnd, doing="saving gradients that no Trainer has applied")
    def at_end(self, _: StepEnd) -> None:
        """Save what has not been applied in this step."""
        self._write([*self._waiting.values()])

    def _write(self, pairs: Iterable[Pair], summed: bool = False, scale: float = 1.0) -> None:
        first: list[Pair] = []
        again: list[Pair] = []
        for pair in pairs:
            key = id(pair[1])
            self._waiting.pop(key, None)
            (again if key in self._written else first).append(pair)
            self._written.add(key)
        for found, write in ((first, self._writer.save_tensors), (again, self._writer.replace_tensors)):
            if found:
                names = [f"gradient/{name}" for name, _ in found]
                write(names, [Gradient(parameter, summed, scale) for _, parameter in found])


class Gradient(Deferred):
    """A parameter's gradient over all contexts, read only if it is saved."""

    __slots__ = ("_parameter", "_scale", "_summed")

    def __init__(self, parameter: Parameter, summed: bool, scale: float) -> None:
        self._parameter = parameter
        self._summed = summed
        self._scale = scale

    def read(self) -> NDArray | npt.NDArray[Any]:
        """The gradient of the whole batch, without a scale that mixed precision has put on the loss."""
        arrays = gradients_of(self._parameter)
        if self._scale == 1.0 and (self._summed or len(arrays) == 1):
            return arrays[0]
        values, _ = to_array(arrays[0])
        if not self._summed and len(arrays) > 1:
            values = functools.reduce(np.add, (to_array(array)[0] for array in arrays[1:]), values)
        return values if self._scale == 1.0 else values * values.dtype.type(self._scale)


def _loss_scale(trainer: Any) -> float:
    # amp.scale_loss multiplies the loss and tells the Trainer to divide by as much; amp.unscale takes both back.
    if attribute(trainer, "_amp_loss_scaler") is None:
        return 1.0
    return float(attribute(trainer, "_scale") / attribute(trainer, "_amp_original_scale"))
