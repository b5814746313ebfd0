"""The numbers of boosting rounds, saved or not: what is evaluated, learning rate, time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from smd_agent.core.budget import SHARE, Rests
from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.boosting.library import Library
from smd_agent.framework.series_rows import LEARNING_RATE, LOSS, SECONDS, StepTime, fence, series_name

# The learning rate is looked up where that has taken no more of the time since than this.
_MOST = 0.01


class EveryRound:
    """The rows of one training: of each round, and of fewer where rounds are so short that rows would show.

    Args:
        series: takes them.
        library: gives the numbers.
    """

    def __init__(self, series: Series, library: Library[Any, Any]) -> None:
        self._series = series
        self._library = library
        self._time = StepTime()
        self._rate = LearningRate(library)
        self._evaluated: tuple[str, ...] | None = None
        self._loss: str | None = None
        self._names: tuple[str, ...] = ()
        self._rests = Rests(SHARE)
        # Rounds without a row: all between two rows, those of them that are yet to come, and what one took.
        self._resting = self._left = 0
        self._others = 0.0
        # The round that has just ended, if it has no row.
        self._last: tuple[Any, Any] | None = None

    @fence("writing the numbers of a round")
    def ended(self, model: Any, log: Any) -> None:
        """A round, which is the current step, has ended; see ``RoundEnd``."""
        if self._left:
            self._last = model, log
            self._left -= 1
            if not self._left:
                self._others = self._time.ends() / self._resting
        elif self._series.wanted:
            seconds = self._time.ends()
            self._write(model, log, seconds)
            if seconds is not ABSENT:
                others, self._others = self._others, 0.0
                self._resting = self._left = self._rests.after(seconds, others)

    @fence("writing the numbers of the last round")
    def end(self) -> None:
        """The training has ended with the current step, which has a row in any case."""
        if self._last is not None and self._series.wanted:
            self._write(*self._last, ABSENT)

    def _write(self, model: Any, log: Any, seconds: float) -> None:
        self._last = None
        metrics = dict(self._library.metrics(log))
        if (evaluated := tuple(metrics)) != self._evaluated:
            self._evaluated = evaluated
            self._loss = self._library.training_loss(model, metrics)
            first = (LEARNING_RATE, SECONDS) if self._loss is None else (LOSS, LEARNING_RATE, SECONDS)
            self._names = (*first, *map(series_name, evaluated))
        numbers = [self._rate.of(model), seconds, *map(float, metrics.values())]
        if self._loss is not None:
            numbers.insert(0, float(metrics[self._loss]))
        self._series.add(STEPS_TABLE, self._names, numbers)


class LearningRate:
    """The learning rate of a training's rounds.

    Args:
        library: gives it.
    """

    def __init__(self, library: Library[Any, Any]) -> None:
        self._library = library
        self._rate = ABSENT
        self._looked_at = self._took = 0.0

    def of(self, model: Any) -> float:
        """That of this round; ``ABSENT`` where it may have changed, and to look it up would take too long."""
        began = perf_counter()
        is_first = not self._looked_at
        if not is_first and not self._library.rate_may_change:
            return self._rate
        if not is_first and self._took > _MOST * (began - self._looked_at):
            return ABSENT
        self._rate = self._library.learning_rate(model)
        self._looked_at = perf_counter()
        self._took = self._looked_at - began
        return self._rate
