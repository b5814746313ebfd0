"""The numbers of each boosting round, saved or not: what is evaluated, learning rate, time."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.boosting.library import Library
from smd_agent.framework.series_rows import LEARNING_RATE, LOSS, SECONDS, StepTime, fence, series_name

# The learning rate is looked up where that has taken no more of the time since than this.
_MOST = 0.01


class EveryRound:
    """The rows of one training.

    Args:
        series: takes them.
        library: gives the numbers.
    """

    def __init__(self, series: Series, library: Library[Any, Any]) -> None:
        self._series = series
        self._library = library
        self._time = StepTime()
        self._evaluated: tuple[str, ...] | None = None
        self._loss: str | None = None
        self._names: tuple[str, ...] = ()
        self._rate = ABSENT
        self._looked_at = self._took = 0.0

    @fence("writing the numbers of a round")
    def ended(self, model: Any, log: Any) -> None:
        """A round, which is the current step, has ended; see ``RoundEnd``."""
        if not self._series.wanted:
            return
        seconds = self._time.ends()
        metrics = dict(self._library.metrics(log))
        if (evaluated := tuple(metrics)) != self._evaluated:
            self._evaluated = evaluated
            self._loss = self._library.training_loss(model, metrics)
            first = (LEARNING_RATE, SECONDS) if self._loss is None else (LOSS, LEARNING_RATE, SECONDS)
            self._names = (*first, *map(series_name, evaluated))
        numbers = [self._learning_rate(model), seconds, *map(float, metrics.values())]
        if self._loss is not None:
            numbers.insert(0, float(metrics[self._loss]))
        self._series.add(STEPS_TABLE, self._names, numbers)

    def _learning_rate(self, model: Any) -> float:
        """The rate of this round; ``ABSENT`` where it may have changed, and to look it up would take too long."""
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
