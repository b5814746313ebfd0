"""Overfit: a validation loss that rises while the training loss falls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from smd_agent.rules.built_in import CollectionKeys, Severity, StepView
from smd_agent.rules.evaluations import Evaluation, OfEvaluations, set_of
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, number, whole

# Of the loss that was gained by the best evaluation, what is given back.
_GIVEN_BACK = 0.1
# Standard deviations of noise that a rise must stand out by.
_STANDS_OUT = 4.0
_LAST_PART = 10
# So ends the name of a loss of a cross-validation.
_OF_FOLDS = "-mean"


class Overfit(OfEvaluations):
    """A validation loss that rises while the training loss falls.

    By themselves the two say little of each other: dropout, augmentation and sums instead of means are in one of them
    only. So the validation loss is measured by its own history, evaluation by evaluation; where it becomes better
    again, the finding is forgotten. The validation loss is that of mode EVAL, or one that is called `val_...`; with
    XGBoost, that of an evaluation set where another one has the rows that are trained, or `train` in its name. It takes
    5 evaluations.

    Losses of boosted trees have little noise and much that no tree can learn, so that a smaller rise is enough if the
    training loss has more than halved since. A set by which early stopping goes is left alone, and what is found in a
    cross-validation is a note: its rounds are there to be chosen from.
    """

    meaning = "the validation loss has risen since its best evaluation, to the end, and the training loss has fallen"
    tensor_regex = TENSOR_REGEX
    start_step = Parameter(whole, 0, "first step that is looked at, counted over all modes")
    patience = Parameter(whole, 3, "evaluations, or saved steps of them, in a row at the end", documented=1)
    ratio_threshold: Parameter[float | None] = Parameter(
        number,
        None,
        "largest rise from the mean loss of a training to that of its evaluation, as part of the former",
        documented=0.1,
    )
    rise = Parameter(number, 0.2, "largest rise since the best evaluation, as part of its loss")
    rise_of_trees = Parameter(number, 0.03, "the same with boosted trees")
    brings = {"losses": {}}
    chosen_by = ("tensor_regex",)
    fewest_evaluations = 5
    severity = Severity.WARNING
    evidence = {
        "validation": "the validation loss: the middle of the last evaluations",
        "best": "the best validation loss, the middle of three evaluations",
        "training": "the training loss before the last evaluations",
        "training_then": "the training loss before the best one",
        "ratio": "how far the validation loss is above the training loss, as part of it",
    }
    cause = "The model learns its training data by heart: it is too large for the data, or trained too long"
    advice = "Stop at the best evaluation, or use more data, augmentation, weight decay, dropout or a smaller model"
    short = "overfit from step {step} on: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        if self.tensor_regex:
            self.needs = ()
        if self.ratio_threshold is not None:
            self.fewest_evaluations = 1

    def take(self, step: StepView) -> None:
        """Take in the losses of a step."""
        if step.place.global_step < self.start_step:
            return
        names = step.names(patterns=self.tensor_regex) if self.tensor_regex else step.names(CollectionKeys.LOSSES)
        for name, now in self.evaluations.take(step, self.losses(step, names)):
            if self.ratio_threshold is not None and now.training:
                ratio = (now.validation - now.training) / abs(now.training)
                row = self.row(name, ratio > self.ratio_threshold)
                if row and row >= self.patience:
                    self.found(step, name, {"validation": now.validation, "training": now.training, "ratio": ratio})

    def end(self) -> None:
        """Judge the whole course."""
        if self.ratio_threshold is None:
            for name, course in self.evaluations.courses().items():
                self.withdraw(course[0].place, name)
                if len(course) >= self.fewest_evaluations and not self.stops_early(name, course[0].place.mode):
                    self._judge(name, course)

    def _judge(self, name: str, course: Sequence[Evaluation]) -> None:
        losses = [one.validation for one in course]
        trainings = [one.training for one in course]
        part = max(self.patience, len(course) // _LAST_PART)
        smooth = [median(losses[max(at - 1, 0) : at + 2]) for at in range(len(losses) - part)]
        best = smooth.index(min(smooth)) if smooth else 0
        if not smooth or smooth[best] <= 0:
            return
        lowest, least = min(losses[-part:]), smooth[best]
        bends = [abs(losses[at - 1] - 2 * losses[at] + losses[at + 1]) for at in range(1, len(losses) - 1)]
        noise = 1.4826 * median(bends) / 6**0.5
        training, then = median(trainings[-part:]), median(trainings[max(best - 1, 0) : best + 2])
        of_trees = set_of(name, course[0].place.mode) is not None
        rise = self.rise_of_trees if of_trees and training < then / 2 else self.rise
        has_risen = lowest > (1 + rise) * least and lowest - least > _GIVEN_BACK * (losses[0] - least)
        if has_risen and lowest - least > _STANDS_OUT * noise and training < then:
            validation = median(losses[-part:])
            evidence = {"validation": validation, "best": least, "training": training, "training_then": then}
            severity = Severity.NOTE if of_trees and name.endswith(_OF_FOLDS) else self.severity
            first, last = course[best + 1].place, course[-1].place
            self.found(first, name, evidence, severity=severity, until=last, steps=len(course) - best - 1)
