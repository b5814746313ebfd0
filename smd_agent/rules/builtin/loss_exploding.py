"""LossExploding: a loss of training that has grown beyond all measure, and is finite."""

from __future__ import annotations

import math

import numpy as np

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Need, Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.series_view import LOSS, SeriesView


class LossExploding(BuiltInRule):
    """A loss of training that has grown beyond all measure, and is finite.

    No task lets a loss grow a hundred million times, so two saved steps tell; `LossNotDecreasing` needs more of them. A
    first loss below 1 counts as 1, because some begin at 0.
    """

    meaning = "a loss of training is many times as large as at its first step; a warning if later ones are not"
    factor = Parameter(number, 1e8, "so many times as large as at the first step, or as 1")
    brings = {"losses": {}}
    needs = (Need((CollectionKeys.LOSSES,), ("", "mean")),)
    modes = TRAINING
    fewest_steps = 2
    evidence = {
        "first": "the loss at the first step",
        "loss": "the loss at the first step at which it is too large",
    }
    cause = "Updates were too large, each on a steeper place than the one before, or the sign of the loss is wrong"
    advice = "Lower the learning rate, warm it up, or clip the gradients; check that the loss has a lower bound"
    short = "loss exploded at step {step}: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._first: dict[str, float] = {}

    def take_series(self, series: SeriesView) -> None:
        """Look at the loss of all steps."""
        for course in series.courses(LOSS):
            loss = course.finite
            self.steps_of_series = max(self.steps_of_series, len(loss))
            sizes = np.abs(loss.values)
            rows = np.flatnonzero(sizes >= self.factor * np.maximum(sizes[:1], 1.0))
            if rows.size:
                begins, ends = loss.place(rows[0]), loss.place(rows[-1])
                numbers = {"first": float(loss.values[0]), "loss": float(loss.values[rows[0]])}
                found = self.found(begins, LOSS, numbers, until=ends, steps=rows.size)
                is_last = rows[-1] == len(loss) - 1
                found.severity = Severity.PROBLEM if is_last else Severity.WARNING

    def take(self, step: StepView) -> None:
        """Look at the losses of a step."""
        for name, loss in step.numbers(step.names(CollectionKeys.LOSSES)).items():
            if not math.isfinite(loss):
                continue
            first = self._first.setdefault(name, loss)
            known = self.finding_of(step, name)
            if abs(loss) >= self.factor * max(abs(first), 1.0):
                self.found(step, name, {"first": first, "loss": loss}).severity = Severity.PROBLEM
            elif known is not None:
                known.severity = Severity.WARNING
