"""The numbers of boosting rounds, saved or not: what is evaluated, learning rate, time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.boosting.library import Library
from smd_agent.framework.series_pauses import StepsAtRest
from smd_agent.framework.series_rows import LEARNING_RATE, LOSS, SECONDS, StepTime, fence, series_name

# The learning rate is looked up where that has taken no more of the time since than this.
_MOST = 0.01


class EveryRound:
    """The rows of one training: of each round, and of fewer where rounds are so short that rows would show.

    Args:
        series: takes them.
        library: gives the numbers.
        rests: between the rows of the run.
    """

    def __init__(self, series: Series, library: Library[Any, Any], rests: StepsAtRest) -> None:
        self._series = series
        self._library = library
        self._time = StepTime()
        self._rate = LearningRate(library)
        # Number of metrics, and the place of the loss among them.
        self._evaluated = -1
        self._loss: int | None = None
        self._names: tuple[str, ...] = ()
        self._rests = rests
        # The round that has just ended, if it has no row.
        self._last: tuple[Any, Any] | None = None

    @fence("writing the numbers of a round")
    def ended(self, model: Any, log: Any) -> None:
        """A round, which is the current step, has ended; see ``RoundEnd``."""
        if self._rests.left:
            self._last = model, log
            self._rests.passes()
            if not self._rests.left:
                self._time.ends()
        elif self._series.wanted:
            self._write(model, log, self._time.ends())
            self._rests.begin()

    @fence("writing the numbers of the last round")
    def end(self) -> None:
        """The training has ended with the current step, which has a row in any case."""
        if self._last is not None and self._series.wanted:
            self._write(*self._last, ABSENT)

    def _write(self, model: Any, log: Any, seconds: float) -> None:
        self._last = None
        metrics = self._library.latest(log)
        # They come in one order, and none goes away.
        if len(metrics) != self._evaluated:
            self._evaluated = len(metrics)
            self._look_at_names(model, log)
        numbers = [self._rate.of(model), seconds, *metrics]
        if self._loss is not None:
            numbers.insert(0, metrics[self._loss])
        self._series.add(STEPS_TABLE, self._names, numbers)

    def _look_at_names(self, model: Any, log: Any) -> None:
        evaluated = [name for name, _ in self._library.metrics(log)]
        loss = self._library.training_loss(model, evaluated)
        self._loss = None if loss is None else evaluated.index(loss)
        first = (LEARNING_RATE, SECONDS) if loss is None else (LOSS, LEARNING_RATE, SECONDS)
        self._names = (*first, *map(series_name, evaluated))


class LearningRate:
    """The learning rate of a training's rounds.

    Args:
        library: gives it.
    """

    def __init__(self, library: Library[Any, Any]) -> None:
        self._library = library
        self._rate = ABSENT
        self._may_change: bool | None = None
        self._looked_at = self._took = 0.0

    def of(self, model: Any) -> float:
        """That of this round; ``ABSENT`` where it may have changed, and to look it up would take too long."""
        if self._may_change is None:
            self._may_change = self._library.rate_may_change
        elif not self._may_change:
            return self._rate
        began = perf_counter()
        if self._took > _MOST * (began - self._looked_at):
            return ABSENT
        self._rate = self._library.learning_rate(model)
        self._looked_at = perf_counter()
        self._took = self._looked_at - began
        return self._rate
