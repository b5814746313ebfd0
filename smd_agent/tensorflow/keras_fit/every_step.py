"""The numbers of each training step of Keras, saved or not: loss, learning rate, time, and the scale of losses."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from smd_agent.core.budget import SHARE, Rests
from smd_agent.core.recorder import Recorder
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.keras.backend import RunningStep
from smd_agent.framework.keras.optimizers import LOSS_SCALE, SKIPPED, inner_of, loss_scale_of, skipped
from smd_agent.framework.keras.plain_access import attribute, own_attributes
from smd_agent.framework.keras.types import Model
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_rows import LEARNING_RATE, LOSS, SECONDS, StepTime, fence, series_name
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.tensorflow.keras_fit.tracked_loss import Losses, Read, reader

ONE_BY_ONE = (LOSS, LEARNING_RATE, SECONDS)
OF_EXECUTIONS = (series_name("execution_loss"), series_name("execution_seconds"))
SCALED = (series_name(LOSS_SCALE), series_name(SKIPPED))


class EveryStep:
    """The rows of a run: of each training step, and of fewer where steps are so short that rows would show.

    Args:
        recorder: of the hook.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._time = StepTime()
        self._rests = Rests(SHARE / 2)
        self._models: WeakIdentityMap[RunningStep[Any], _ModelNumbers] = WeakIdentityMap()
        self._now: _ModelNumbers | None = None
        # Calls of models that have no row until the next one, how many those are in all, and what one took before.
        self._resting = self._count = 0
        self._others = 0.0

    @fence("looking at a step that begins")
    def begins(self, step: RunningStep[Any], steps: int) -> bool:
        """A model begins so many steps in one call; True if their end is to be told."""
        if self._resting:
            ends = self._resting == 1
            self._resting -= not ends
            return ends
        if not self._recorder.series.wanted or not tf.executing_eagerly():
            return False
        now = self._models.get(step)
        if now is None:
            now = self._models.set(step, _ModelNumbers(step.model))
        now.begin(step.model, steps)
        self._now = now
        return True

    @fence("writing the numbers of a step")
    def ended(self) -> None:
        """What has begun last has ended, with the current step."""
        seconds = self._time.ends()
        if self._resting:
            self._others, self._resting = seconds / self._count, 0
            return
        now, self._now = self._now, None
        if now is not None:
            self._recorder.series.add(STEPS_TABLE, *now.end(seconds))
            if seconds is not ABSENT:
                others, self._others = self._others, 0.0
                self._count = self._resting = self._rests.after(seconds, others)


class _ModelNumbers:
    """The numbers of the steps of one model's function.

    Args:
        model: whose steps they are.
    """

    def __init__(self, model: Model) -> None:
        self._losses = Losses(model)
        self._rate = _LearningRate()
        self._names: tuple[str, ...] = ONE_BY_ONE
        # Those of the optimizer that multiplies losses, if there is one.
        self._optimizer: Any = None
        self._scale: float | None = None
        self._steps = 1

    def begin(self, model: Model, steps: int) -> None:
        """A call for so many steps begins."""
        self._steps = steps
        self._losses.begin()
        optimizer = attribute(model, "optimizer")
        inner = inner_of(optimizer)
        self._rate.optimizer = optimizer if inner is None else inner
        self._optimizer = None if inner is None else optimizer
        self._scale = None if inner is None else loss_scale_of(optimizer)

    def end(self, seconds: float) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """The call ends, which has taken so long; names and values of its row."""
        loss, rate = self._losses.end(), self._rate.now()
        values: tuple[float, ...] = (loss, rate, seconds)
        if self._steps > 1:
            self._add_names(OF_EXECUTIONS)
            # Of each of its steps nobody knows them.
            values = (ABSENT, rate, ABSENT)
        if self._scale is not None:
            self._add_names(SCALED)
        if self._names is ONE_BY_ONE:
            return ONE_BY_ONE, values
        further: dict[str, float] = {}
        if self._steps > 1:
            further.update(zip(OF_EXECUTIONS, (loss, seconds), strict=True))
        if self._scale is not None:
            skips = skipped(self._optimizer, self._scale).get(SKIPPED, ABSENT)
            further.update(zip(SCALED, (self._scale, skips), strict=True))
        return self._names, (*values, *(further.get(name, ABSENT) for name in self._names[len(values) :]))

    def _add_names(self, names: tuple[str, ...]) -> None:
        # Whatever steps come later, their rows keep them: other names begin another file.
        if names[0] not in self._names:
            self._names = (*self._names, *names)


class _LearningRate:
    """The rate of an optimizer, where it is a number or a variable.

    Attributes:
        optimizer: whose it is.
    """

    def __init__(self) -> None:
        self.optimizer: Any = None
        self._source: Any = None
        self._read: Read | None = None

    def now(self) -> float:
        """The rate that the last update used; ``ABSENT`` where it would have to be computed."""
        source = self._found()
        if is_a(source, float):
            return source
        if source is not self._source:
            self._source, self._read = source, None if source is None else reader(source)
        return ABSENT if self._read is None else self._read()

    def _found(self) -> Any:
        own = own_attributes(self.optimizer)
        # Of a schedule in Keras 2, the second.
        source = own.get("_learning_rate")
        if source is not None:
            return own.get("_current_learning_rate") if callable(source) else source
        # Keras 2's older optimizers, which make it smaller by a decay of their own.
        return None if own.get("_initial_decay") else own.get("_hyper", {}).get("learning_rate")
