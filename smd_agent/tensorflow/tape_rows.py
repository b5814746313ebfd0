"""The numbers of each step with tapes, saved or not: loss, learning rate, time, and the scale of losses.

Nothing tells that such a step ends: its row is written when the next one begins, or at the end.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from smd_agent.core.recorder import Recorder
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.keras.optimizers import LOSS_SCALE, SKIPPED, inner_of, kept_rate, skipped
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_pauses import StepsAtRest
from smd_agent.framework.series_rows import ONE_BY_ONE, At, fence, series_name
from smd_agent.framework.weak_references import Reference
from smd_agent.framework.wrong_steps import WrongSteps
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.scalar_variables import Scalars, plain_variable
from smd_agent.tensorflow.types import Optimizer

OF_SCALED: tuple[str, ...] = (*ONE_BY_ONE, series_name(LOSS_SCALE), series_name(SKIPPED))


class _Numbers:
    """The numbers of one step, as far as they are known.

    ``losses``: of all that was differentiated, None where one of them is not known.
    ``targets``: what was differentiated eagerly.
    """

    __slots__ = ("at", "losses", "rate", "scale", "skips", "targets")

    def __init__(self, at: At) -> None:
        self.at = at
        self.losses: list[float] | None = []
        self.rate = self.scale = self.skips = ABSENT
        self.targets: list[weakref.ref[Any]] = []

    def add(self, loss: float) -> None:
        """One more was differentiated."""
        if loss is ABSENT:
            self.losses = None
        elif self.losses is not None:
            self.losses.append(loss)


class TapeRows:
    """The step that is under way; where steps are so short that rows would show, some have none.

    Args:
        recorder: of the hook.
        wrong: are told of losses; None where nobody wants to know.

    Attributes:
        looks: the current step has a row, or is the last one that has none.
    """

    def __init__(self, recorder: Recorder, wrong: WrongSteps | None = None) -> None:
        self._recorder = recorder
        self._wrong = wrong
        self._rests = StepsAtRest(recorder.series.budget)
        self._rate = LearningRate()
        self._names = ONE_BY_ONE
        self.drop()

    def drop(self) -> None:
        """Forget everything."""
        self._rests.begin_anew()
        self._step = -2
        self._now: _Numbers | None = None
        # When the step before has ended, and when something of the current one was seen last.
        self._before = self._seen = 0.0
        self.looks = False

    @fence("looking at a step that begins")
    def reached(self) -> None:
        """Something of the current step is about to be told; if it is another one, the one before has ended."""
        position = self._recorder.position
        if position.step == self._step:
            return
        self._step = position.step
        if self._rests.left:
            self._rests.passes()
        elif self._now is not None:
            self._write(self._now)
            self._rests.begin()
        self._before = self._seen if self.looks else 0.0
        self.looks = self._rests.left < 2 and self._recorder.series.wanted
        self._now = _Numbers(At.current(position)) if self.looks and not self._rests.left else None

    @fence("looking at what is differentiated")
    def differentiated(self, targets: Iterable[Any]) -> None:
        """A tape has differentiated these tensors; they are given as they were before scaling."""
        now = self._now
        if now is not None:
            for target in targets:
                # A tape may be asked for the gradients of each variable by itself.
                if not any(known() is target for known in now.targets):
                    now.targets.append(Reference(target))
                    now.add(value_of(target))
        self._seen = perf_counter()

    @fence("looking at what a tf.function has computed")
    def computed(self, losses: Iterable[Any] | None) -> None:
        """A compiled step has ended; ``losses``: all that was differentiated in it, None where that is not known."""
        now = self._now
        if now is not None:
            for loss in (ABSENT,) if losses is None else map(value_of, losses):
                now.add(loss)
        self._seen = perf_counter()

    @fence("looking at the scale of a loss")
    def scaled(self, scale: float) -> None:
        """The losses of the current step were multiplied by this."""
        if self._now is not None and self._now.scale is ABSENT:
            self._now.scale = scale

    @fence("looking at the learning rate of an update")
    def uses_rate(self, rate: Any) -> None:
        """An optimizer updates with this, which a schedule has given."""
        if self._now is not None and self._now.rate is ABSENT:
            self._now.rate = value_of(rate)

    @fence("looking at an update")
    def updated(self, optimizer: Optimizer) -> None:
        """An optimizer has updated variables."""
        now = self._now
        if now is not None:
            if now.rate is ABSENT:
                now.rate = self._rate.of(optimizer)
            if now.scale is not ABSENT and now.skips is ABSENT:
                now.skips = skipped(optimizer, now.scale).get(SKIPPED, ABSENT)
        self._seen = perf_counter()

    @fence("writing the numbers of the last step")
    def settle(self) -> None:
        """Write what is yet to be written."""
        now, self._now = self._now, None
        if now is not None:
            self._write(now)

    def _write(self, now: _Numbers) -> None:
        loss = sum(now.losses) if now.losses else ABSENT
        numbers: tuple[float, ...] = loss, now.rate, self._seen - self._before if self._before else ABSENT
        if now.scale is not ABSENT:
            self._names = OF_SCALED
        if self._names is OF_SCALED:
            numbers = (*numbers, now.scale, now.skips)
        self._recorder.series.add_at(STEPS_TABLE, *now.at, self._names, numbers)
        if self._wrong is not None and self._wrong.wanted and now.skips != 1.0:
            self._wrong.saw(now.at, loss)


class LearningRate:
    """The learning rates that optimizers keep; of the last one is remembered where it is."""

    def __init__(self) -> None:
        self._optimizer: Any = bool
        self._inner: Any = bool
        self._rate: Any = bool
        self._scalars = Scalars(())

    def of(self, optimizer: Optimizer) -> float:
        """That of the last update of an optimizer, or the one inside of it; ``ABSENT`` where it was computed then."""
        if self._optimizer() is not optimizer:
            inner = inner_of(optimizer)
            self._optimizer, self._inner = Reference(optimizer), Reference(optimizer if inner is None else inner)
        rate = kept_rate(self._inner())
        if rate is None or is_a(rate, float):
            return ABSENT if rate is None else float(rate)
        if self._rate() is not rate:
            variable = plain_variable(rate)
            self._rate, self._scalars = Reference(rate), Scalars(() if variable is None else (variable,))
        return next(iter(self._scalars.read()), ABSENT)


def value_of(tensor: Any) -> float:
    """The mean of an eager tensor; ``ABSENT`` where the program would have to wait for it."""
    if not is_a(tensor, tf.Tensor) or "CPU" not in tensor.device or not tensor.dtype.is_floating:
        return ABSENT
    if context.is_async():
        return ABSENT
    if tensor.shape.rank == 0:
        return float(tensor)
    found = to_array(tensor)
    return ABSENT if found is None or not found[0].size else float(np.mean(found[0], dtype=np.float64))
