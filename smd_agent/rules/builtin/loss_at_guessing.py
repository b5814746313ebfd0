"""LossAtGuessing: a loss of classes that stays where always answering with the labels' frequencies would have it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, CollectionKeys, NotJudged, Place, Severity, StepView
from smd_agent.rules.evaluations import Thinned
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.series_view import LOSS, SeriesView
from smd_agent.rules.series_view import Course as SeriesCourse
from smd_agent.rules.update_ratios import UpdateRatios
from smd_agent.rules.usage import Numbers, RuleOfUsage

# Of the way from guessing to being right: what a loss may still be falling by, also after it was thrown off, and be
# above guessing.
_FALLING, _RECOVERING = 0.01, 0.1
_ABOVE = 0.5
# Below that, labels are nearly all the same, and there is nothing to be learned.
_LEAST_TO_LEARN = 0.02
# Standard errors that the mean of the last third must be sure by.
_SURE = 2.0
_MOST_KEPT = 1024
# Saved steps by which the loss of a series is known to be the same.
_FEWEST_SAVED = 5
_SAME = 1e-3
# Updates, as parts of the weights that they change, that overwrite these; at so many saved steps.
_LARGE_UPDATE = 0.05
_LARGE_STEPS = 3
# Of a guess: what a loss comes to when a model is thrown off.
_THROWN_OFF = 1.1
_RATE_TOO_HIGH = (
    "The learning rate is far too high: its first updates were as large as the weights, which they have overwritten,"
    " and the loss rose above guessing"
)
_LOWER_THE_RATE = "Divide the learning rate by 10 until updates are about a thousandth of their weights; warm up"


class LossAtGuessing(RuleOfUsage):
    """A loss of classes that stays where always answering with the labels' frequencies would have it.

    That is the entropy of the labels, such as log(N) of a contrast of N pairs. What a loss has learned is the part of
    the way from there to what it would be with all answers right. A training of several optimizers is left alone, as
    losses that work against each other may stay there; so is one whose loss is still falling. A run of
    fewer than 100 training steps is none for it. Several models that are trained after one another, as in a search,
    are judged one by one. Where few steps were saved, and the series has the same loss at all of them, it is judged
    by the loss of every step.

    Where updates were as large as a twentieth of their weights, and the loss has risen above guessing, the learning
    rate is named as the cause.
    """

    meaning = "the training loss is no better than a constant answer, from the first to the last of many steps"
    steps = Parameter(whole, 100, "fewest training steps from the first to the last saved one")
    saved = Parameter(whole, 20, "fewest saved steps")
    learned = Parameter(number, 0.05, "part of the way from guessing to being right")
    brings = {"usage,optimizer": {}}
    needs = RuleOfUsage.needs
    modes = TRAINING
    fewest_steps = 20
    kind = "loss"
    facts = ("guess", "loss")
    severity = Severity.WARNING
    evidence = {
        "loss": "the mean loss of the last third",
        "guess": "what it would be for one who always answers with the frequencies of the labels",
        "learned": "the part of the way from there to right answers that the last third has gone",
        "best": "the same of the best fifth",
        "classes": "how many classes there are",
        "update": "the largest update as a part of the weights that it changes, of the median matrix",
    }
    cause = (
        "The model has learned how frequent labels are, and nothing from its inputs: the two do not belong together, "
        "inputs are lost on the way, or another part of the loss outweighs this one"
    )
    advice = (
        "Print inputs beside their labels; train on one batch alone, whose loss must go to 0; check the axis of the "
        "batch, what logits are multiplied by, the parts of the loss, and the learning rate"
    )
    short = "no better than guessing: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._courses: dict[tuple[str, float], _Course] = {}
        self._ended: list[tuple[tuple[str, float], _Course]] = []
        self._optimizers: dict[str, tuple[int, int]] = {}
        self._series: list[SeriesCourse] = []
        self._updates: list[float] = []
        self._ratios = UpdateRatios()

    def take_series(self, series: SeriesView) -> None:
        """Take in the loss of all steps."""
        self._series = [course.finite for course in series.courses(LOSS)]

    def take(self, step: StepView) -> None:
        """Look at each loss of a step, at which optimizers there are, and how large updates are."""
        for name in step.names(CollectionKeys.OPTIMIZER):
            if name.endswith("/lr"):
                title = name.split("/")[1]
                first, _ = self._optimizers.get(title, (step.place.global_step, 0))
                self._optimizers[title] = first, step.place.global_step
        self._look_at_updates(step)
        super().take(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Take in one loss; the first one of another model has no guess."""
        key = of, numbers.get("classes", 0.0)
        if "guess" not in numbers and key in self._courses:
            self._ended.append((key, self._courses.pop(key)))
        elif "guess" in numbers and math.isfinite(numbers.get("loss", math.nan)):
            self._courses.setdefault(key, _Course(step.place)).add(step.place, numbers)

    def _look_at_updates(self, step: StepView) -> None:
        _, ratios = step.numbers(self._ratios.names_in(step))
        finite = ratios[np.isfinite(ratios)]
        if finite.size:
            self._updates.append(float(np.median(finite)))

    def end(self) -> None:
        """Judge the whole course of each model."""
        for (of, classes), course in self._all():
            name = f"{USAGE}{of}/loss"
            self.withdraw(course.first, name)
            if self._has_several():
                continue
            judged = self._enough_of(course)
            if judged is None:
                continue
            is_thrown_off = self._overwrites() and judged.was_thrown_off
            evidence = judged.stays(self.learned, _RECOVERING if is_thrown_off else _FALLING)
            if evidence is None:
                continue
            evidence |= {"classes": classes} if classes else {}
            evidence |= {"update": max(self._updates)} if is_thrown_off else {}
            cause, advice = (_RATE_TOO_HIGH, _LOWER_THE_RATE) if is_thrown_off else ("", "")
            found = self.found(
                course.first, name, evidence, cause=cause, advice=advice, until=course.last, steps=judged.steps.count
            )
            found.every_step = judged is not course

    @property
    def has_judged(self) -> bool:
        """True if there were enough steps."""
        return bool(self._findings) or any(self._enough_of(course) for _, course in self._all())

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether the run has such a loss, and is long enough."""
        is_long = any(self._is_long(course) for _, course in self._all())
        return super().fits(collections) and (is_long or not self._steps_seen)

    def not_judged(self) -> NotJudged:
        """Say what is lacking."""
        if not self._has_any:
            return super().not_judged()
        return self.too_few(f"it takes {self.saved} saved training steps to judge")

    def _all(self) -> list[tuple[tuple[str, float], _Course]]:
        return [*self._ended, *self._courses.items()]

    def _enough_of(self, course: _Course) -> _Course | None:
        """Return what is judged: a course, or that of the same loss over every step; None if there are too few."""
        if not self._is_long(course):
            return None
        if course.steps.count >= self.saved:
            return course
        return next((every for one in self._series if (every := course.over(one)) is not None), None)

    def _is_long(self, course: _Course) -> bool:
        return course.last.step - course.first.step + 1 >= self.steps

    def _overwrites(self) -> bool:
        return sum(ratio > _LARGE_UPDATE for ratio in self._updates) >= _LARGE_STEPS

    def _has_several(self) -> bool:
        ranges = sorted(self._optimizers.values())
        return any(later[0] <= earlier[1] for earlier, later in itertools.pairwise(ranges))


class _Step(NamedTuple):
    step: int
    loss: float
    guess: float
    least: float


class _Course:
    """A loss over the steps, and what it is for one who guesses."""

    def __init__(self, first: Place) -> None:
        self.first = self.last = first
        self.steps: Thinned[_Step] = Thinned(_MOST_KEPT)

    def add(self, place: Place, numbers: Numbers) -> None:
        self.last = place
        self.steps.add(_Step(place.step, numbers["loss"], numbers["guess"], numbers.get("least", 0.0)))

    def over(self, series: SeriesCourse) -> _Course | None:
        """Return the same loss over every step of a series; None if that has another one, or nothing tells."""
        saved = self.steps.items()
        losses = dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))
        known = [(one.loss, losses[one.step]) for one in saved if one.step in losses]
        are_same = all(math.isclose(own, other, rel_tol=_SAME, abs_tol=_SAME) for own, other in known)
        if len(known) < _FEWEST_SAVED or not are_same or self.first.mode is not series.mode:
            return None
        every = _Course(self.first)
        every.last = self.last
        guess, least = fmean(one.guess for one in saved), fmean(one.least for one in saved)
        for step, loss in losses.items():
            if self.first.step <= step <= self.last.step:
                every.steps.add(_Step(step, loss, guess, least))
        return every

    @property
    def was_thrown_off(self) -> bool:
        """True if the loss began at a guess, and has risen above it."""
        steps = self.steps.items()
        limits = [_THROWN_OFF * step.guess for step in steps]
        return steps[0].loss < limits[0] and any(step.loss > most for step, most in zip(steps, limits, strict=True))

    def stays(self, most: float, falling: float) -> dict[str, float] | None:
        """Return the evidence that no more than such a part has been learned; None if more was, or may be.

        Args:
            most: the part.
            falling: what the loss may still be falling by.
        """
        steps = self.steps.items()
        way = fmean(step.guess - step.least for step in steps)
        if way < _LEAST_TO_LEARN:
            return None
        learned = [(step.guess - step.loss) / way for step in steps]
        third, fifth = len(steps) // 3, len(steps) // 5
        last, before = fmean(learned[-third:]), fmean(learned[-2 * third : -third])
        best = max(fmean(learned[at : at + fifth]) for at in range(len(steps) - fifth + 1))
        is_sure = _SURE * stdev(learned[-third:]) / third**0.5 <= most
        if not (last >= -_ABOVE and best <= most and last - before <= falling and is_sure):
            return None
        loss, guess = (fmean(part) for part in zip(*((step.loss, step.guess) for step in steps[-third:]), strict=True))
        return {"loss": loss, "guess": guess, "learned": last, "best": best}
