"""LearningRateZero: updates with a learning rate of 0."""

from __future__ import annotations

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, ModeKeys, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.series_view import LEARNING_RATE, Course, SeriesView, longest_row

# Of all training steps, at which the only rate of a training is 0 in a row.
_SHARE = 0.1


class LearningRateZero(BuiltInRule):
    """Updates with a learning rate of 0.

    At the first step of a warm-up and at the last one of a decay it may be 0, so it takes some steps in a row. Where
    only some groups of an optimizer have it, they may be frozen by that, which is a note.
    """

    meaning = (
        "an optimizer updates with a learning rate of exactly 0, at several saved steps in a row or a tenth of all"
    )
    patience = Parameter(whole, 5, "saved steps in a row")
    brings = {"optimizer": {}}
    modes = TRAINING
    fewest_steps = 5
    evidence = {
        "groups": "how many groups of parameters the optimizer has",
        "groups_at_zero": "how many of them have a learning rate of 0",
        "last_learning_rate": "the last one that was not 0, if there was any",
    }
    cause = "A schedule has ended or began at 0 and was never stepped, or it is stepped by batch where epochs are meant"
    advice = "Give the schedule its length in what it is stepped by, batches or epochs; print the rate beside the loss"
    short = "learning rate 0 from step {step} on: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._last: dict[str, float] = {}
        self._names: set[tuple[str, ModeKeys]] = set()
        self._series: dict[ModeKeys, Course] = {}

    def take_series(self, series: SeriesView) -> None:
        """Take in the learning rate of all steps."""
        self._series = {course.mode: course for course in series.courses(LEARNING_RATE)}

    def take(self, step: StepView) -> None:
        """Look at the learning rates of a step."""
        rates = dict(step.numbers(step.names(CollectionKeys.OPTIMIZER, patterns=())).items())
        rates = {name: rate for name, rate in rates.items() if name.endswith("/lr")}
        self._names |= {(name, step.mode) for name in rates}
        for name, rate in rates.items():
            if rate:
                self._last[name] = rate
            if self.row(name, not rate) >= self.patience and not rate:
                own = [value for other, value in rates.items() if _optimizer_of(other) == _optimizer_of(name)]
                zeros = own.count(0.0)
                severity = Severity.PROBLEM if zeros == len(own) else Severity.NOTE
                last = {"last_learning_rate": self._last[name]} if name in self._last else {}
                self.found(step, name, {"groups": len(own), "groups_at_zero": zeros, **last}, severity=severity)

    def end(self) -> None:
        """Judge the rate of all steps, where the training has only one."""
        for name, mode in self._names if len(self._names) == 1 else ():
            course = self._series.get(mode)
            begin, count = (0, 0) if course is None else longest_row(course.values == 0)
            if course is not None and count >= max(self.patience, _SHARE * len(course)):
                last = {"last_learning_rate": float(course.values[begin - 1])} if begin else {}
                self.withdraw(course.place(begin), name)
                evidence = {"groups": 1, "groups_at_zero": 1, **last}
                until = course.place(begin + count - 1)
                found = self.found(course.place(begin), name, evidence, until=until, steps=count)
                found.every_step = True


def _optimizer_of(name: str) -> str:
    return name.split("/")[1]
