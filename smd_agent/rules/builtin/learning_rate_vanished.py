"""LearningRateVanished: a learning rate that has all but vanished long before the training ends."""

from __future__ import annotations

import numpy as np

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, ModeKeys, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.series_view import LEARNING_RATE, Course, SeriesView, last_row

_COMPOUNDS = (
    "Each fall of the rate is by one power more of the same factor: the schedule multiplies the rate that it has"
    " changed before, as lr * 0.9 ** epoch does, where the rate at the beginning is meant"
)
_FROM_THE_FIRST = (
    "Let the schedule return the first rate times the power, as first * 0.9 ** epoch, or the rate that it is given"
    " times the factor, as lr * 0.9"
)
# Falls of which the law is told, and how exactly they have to keep it.
_FALLS = 6
_EXACT = 1e-3
# Smaller ones are not exact in single precision.
_TINY = 1e-30


class LearningRateVanished(BuiltInRule):
    """A learning rate that has all but vanished long before the training ends.

    Schedules that fall to 0 by a cosine, a line or one cycle are that low only in the last few percent of their steps,
    and those that fall in some steps are not that low. Above a third of the steps it is a warning. The largest rate is
    that before the fall, so that a warm-up is none. A rate of exactly 0 is left to LearningRateZero.

    Where the rate stays for equal times and falls by a factor, its square, its cube and so on, the cause is told: a
    schedule that multiplies its own result again.
    """

    meaning = "a learning rate is below a thousandth of its largest one, to the end, for a good part of the saved steps"
    factor = Parameter(number, 1e-3, "largest part of the largest rate that is as good as none")
    share = Parameter(number, 0.2, "largest share of the saved steps that may have it")
    warning = Parameter(number, 1 / 3, "share above which it is no note but a warning")
    brings = {"optimizer": {}}
    modes = TRAINING
    fewest_steps = 10
    evidence = {
        "largest": "the largest learning rate",
        "last": "the last one",
        "share": "the share of the steps of this optimizer since it fell that low",
        "factor": "the factor of which it falls by one power more each time",
    }
    cause = "A schedule is stepped too often, by batch where epochs are meant, or waits for a score to fall that rises"
    advice = (
        "Step the schedule once for each epoch (Lightning: interval='epoch'), or give it its lengths in batches;"
        " ReduceLROnPlateau: mode='max' for a score, and a least rate"
    )
    short = "learning rate has all but vanished: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._rates: dict[str, _Rate] = {}
        self._series: dict[ModeKeys, Course] = {}

    def take_series(self, series: SeriesView) -> None:
        """Take in the learning rate of all steps."""
        self._series = {course.mode: course.finite for course in series.courses(LEARNING_RATE)}

    @property
    def steps_that_count(self) -> int:
        """Number of steps that it could judge by."""
        return max([super().steps_that_count, *(rate.steps for rate in self._rates.values())])

    def take(self, step: StepView) -> None:
        """Look at the learning rates of a step."""
        for name, rate in step.numbers(step.names(CollectionKeys.OPTIMIZER)).items():
            if name.endswith("/lr"):
                self._rates.setdefault(name, _Rate()).add(step.place, rate, self.factor)

    def end(self) -> None:
        """Judge the whole course; of the only rate of a training that over all steps, saved or not."""
        factor = None
        for saved in self._rates.values() if len(self._rates) == 1 else ():
            course = self._series.get(saved.last.mode) if saved.last is not None else None
            factor = None if course is None else _compounding(course)
            if course is not None and len(course) > saved.steps:
                saved.take_all(course, self.factor)
        for name, rate in self._rates.items():
            if rate.found_at is not None:
                self.withdraw(rate.found_at, name)
            part = rate.below / max(rate.steps, 1)
            if rate.since is None or rate.last is None or rate.steps < self.fewest_steps or part <= self.share:
                continue
            severity = Severity.WARNING if part > self.warning else Severity.NOTE
            evidence = {"largest": rate.largest, "last": rate.value, "share": part}
            rate.found_at = rate.since
            cause, advice = ("", "") if factor is None else (_COMPOUNDS, _FROM_THE_FIRST)
            evidence |= {} if factor is None else {"factor": factor}
            found = self.found(
                rate.since,
                name,
                evidence,
                severity=severity,
                cause=cause,
                advice=advice,
                until=rate.last,
                steps=rate.below,
            )
            found.every_step = rate.every_step


def _compounding(course: Course) -> float | None:
    """The factor of which a rate falls by one power more each time, after equal times; None where it does not."""
    known = course.where(course.values > _TINY)
    changes = np.flatnonzero(np.diff(known.values)) + 1
    if len(changes) <= _FALLS or len(set(np.diff(known.steps[changes]).tolist())) > 1:
        return None
    falls = np.diff(np.log(known.values[[0, *changes]]))
    more = np.diff(falls)
    power = float(np.median(more))
    if power >= 0 or not np.all(np.abs(more - power) < _EXACT * -power):
        return None
    times = falls[0] / power
    return float(np.exp(power)) if abs(times - round(times)) < 10 * _EXACT else None


class _Rate:
    """A learning rate over the steps, and since when it has been so low."""

    def __init__(self) -> None:
        self.steps = self.below = 0
        self.every_step = False
        self.largest = self.value = 0.0
        self.since: Place | None = None
        self.last: Place | None = None
        self.found_at: Place | None = None

    def take_all(self, course: Course, factor: float) -> None:
        values = course.values
        is_low = (values > 0) & (values < factor * np.maximum.accumulate(np.maximum(values, 0)))
        begin, self.steps, self.every_step = last_row(is_low), len(course), True
        self.below = self.steps - begin
        self.since = course.place(begin) if self.below else None
        self.last, self.value, self.largest = course.place(-1), float(values[-1]), float(np.max(values))

    def add(self, place: Place, value: float, factor: float) -> None:
        self.steps += 1
        self.value, self.last = value, place
        self.largest = max(self.largest, value)
        if not 0 < value < factor * self.largest:
            self.since, self.below = None, 0
        else:
            self.since = self.since or place
            self.below += 1
