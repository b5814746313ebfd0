"""Overtraining: neither loss becomes better any more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from smd_agent.rules.built_in import CollectionKeys, Severity, StepView
from smd_agent.rules.evaluations import Evaluation, Loss, OfEvaluations
from smd_agent.rules.parameters import Parameter, number, whole

# What has not fallen by so much has not learned anything yet.
_LEARNED = 0.1


class _Own(NamedTuple):
    """A validation loss; or, without a name, the training loss of this key."""

    name: str
    key: str


class Overtraining(OfEvaluations):
    """Neither the training loss nor the validation loss becomes better any more.

    From step to step losses go up and down, so they are taken evaluation by evaluation: the mean over one, and over
    the training before it. It is a finding where at least the second half of the evaluations has brought nothing. That
    a training has reached its end is often meant, so it is a note. What `Overfit` says of the two losses holds here.
    """

    meaning = "training and validation loss have had no new best one for half of the evaluations, and for so many"
    patience_train = Parameter(whole, 5, "evaluations, or saved training steps, without a better one")
    patience_validation = Parameter(whole, 10, "evaluations, or saved steps of them, without a better one")
    delta: Parameter[float | None] = Parameter(
        number,
        None,
        "how much lower than the best a loss must be to be better; each saved step is then compared",
        documented=0.01,
    )
    share = Parameter(number, 0.01, "the same as part of the best one, for evaluations")
    brings = {"losses": {}}
    severity = Severity.NOTE
    evidence = {
        "best": "the best validation loss",
        "best_training": "the best training loss",
        "for_validation": "for how many evaluations, or saved steps of them, there was no better validation loss",
        "for_training": "for how many there was no better training loss",
    }
    cause = "The training has reached what it can: more of it brings nothing, and may make the validation worse"
    advice = "Stop earlier, keep the weights of the best evaluation, or lower the learning rate from there on"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self.fewest_evaluations = 1 if self.delta is not None else max(self.patience_train, self.patience_validation)
        self._best: dict[_Own, tuple[float, int]] = {}

    def take(self, step: StepView) -> None:
        """Take in the losses of a step."""
        losses = self.losses(step, step.names(CollectionKeys.LOSSES))
        for _ in self.evaluations.take(step, losses):
            pass
        if self.delta is not None:
            for loss in losses:
                self._compare(step, loss, self.delta)

    def _compare(self, step: StepView, loss: Loss, delta: float) -> None:
        own = _Own(loss.name if loss.is_validation else "", loss.key)
        best, since = self._best.get(own, (math.inf, 0))
        self._best[own] = (loss.value, 0) if loss.value < best - delta else (best, since + 1)
        best_training, in_training = self._best.get(_Own("", loss.key), (math.inf, -1))
        for (name, key), (best, since) in self._best.items():
            waited = since >= self.patience_validation and in_training >= self.patience_train
            if name and key == loss.key and waited:
                evidence = {"best": best, "best_training": best_training}
                self.found(step, name, evidence | {"for_validation": since, "for_training": in_training})

    def end(self) -> None:
        """Judge the whole course."""
        if self.delta is None:
            for name, course in self.evaluations.courses().items():
                self.withdraw(course[0].place, name)
                self._judge(name, course)

    def _judge(self, name: str, course: Sequence[Evaluation]) -> None:
        validation = [one.validation for one in course]
        training = [one.training for one in course]
        at, best = self._last_best(validation)
        at_training, best_training = self._last_best(training)
        since, in_training = len(course) - 1 - at, len(course) - 1 - at_training
        half = len(course) / 2
        has_learned = best < (1 - _LEARNED) * validation[0]
        waited = since >= max(self.patience_validation, half) and in_training >= max(self.patience_train, half)
        if has_learned and waited:
            evidence = {"best": best, "best_training": best_training}
            evidence |= {"for_validation": since, "for_training": in_training}
            first, last = course[max(at, at_training) + 1].place, course[-1].place
            self.found(first, name, evidence, until=last, steps=min(since, in_training))

    def _last_best(self, losses: Sequence[float]) -> tuple[int, float]:
        """Return where the last new best one is, and the loss there."""
        where = 0
        for at, loss in enumerate(losses):
            if loss < losses[where] - self.share * abs(losses[where]):
                where = at
        return where, losses[where]
