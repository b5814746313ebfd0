"""EvaluationOfOtherScale: a model that is evaluated on inputs of another scale than those that it is trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from smd_agent.framework.training_facts import INTEGERS, USAGE, USED_INPUT
from smd_agent.rules.built_in import BuiltInRule, ModeKeys, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, numbers_of


class _Looked(NamedTuple):
    """An input at one step."""

    place: Place
    mean: float
    std: float


class EvaluationOfOtherScale(BuiltInRule):
    """A model that is evaluated on inputs of another scale than those that it is trained on.

    The standard deviation of an input is compared, and the distance of its mean from that of training in standard
    deviations of both. It has to be so at each saved step of evaluation, beside each of training. What varies by itself
    as much, such as inputs that have one element, or the states of a game, is left alone so.

    Numbers of tokens and other integers are left alone, but where a model is trained on floats and evaluated on
    integers they are compared.
    """

    meaning = "the inputs of all evaluations are of another scale than those of training, or far from them"
    ratio = Parameter(number, 8.0, "largest ratio of the standard deviations, and distance of the means in them")
    patience = Parameter(whole, 3, "saved steps of training, and of evaluation, at least")
    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {"usage": {}}
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL)
    fewest_steps = 6
    severity = Severity.WARNING
    evidence = {
        "std": "the standard deviation of the input at the first evaluation",
        "mean": "its mean there",
        "std_trained": "the standard deviation of the same input in training, at the saved step nearest to that",
        "mean_trained": "its mean there",
    }
    cause = (
        "Evaluation gets data that was not scaled as that of training was: raw where that is normalised, scaled twice,"
        " or by a scaler that was fitted anew"
    )
    advice = (
        "Fit the scaler on the training data alone and apply it to all of them, outside of the augmentation: transform"
        " of training, validation and test must differ in random changes alone"
    )
    short = "evaluated on another scale: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[str, dict[ModeKeys, list[_Looked]]] = {}

    @property
    def is_concerned(self) -> bool:
        """True if an input was there in training and in evaluation."""
        return any(len(modes) == len(self.modes) for modes in self._seen.values())

    def take(self, step: StepView) -> None:
        """Take in the inputs of a step."""
        for name, numbers in numbers_of(step, USED_INPUT).items():
            looked = _Looked(step.place, numbers.get("mean", math.nan), numbers.get("std", math.nan))
            if math.isfinite(looked.mean) and math.isfinite(looked.std) and not _is_integer_in_training(step, numbers):
                self._seen.setdefault(name, {}).setdefault(step.mode, []).append(looked)

    def end(self) -> None:
        """Compare the two."""
        for name, modes in self._seen.items():
            trained, evaluated = (modes.get(mode, []) for mode in self.modes)
            if evaluated:
                self.withdraw(evaluated[0].place, f"{USAGE}{name}/std")
            if min(len(trained), len(evaluated)) >= self.patience and self._differ(trained, evaluated):
                first = evaluated[0]
                near = min(trained, key=lambda one: abs(one.place.global_step - first.place.global_step))
                evidence = {"std": first.std, "mean": first.mean}
                evidence |= {"std_trained": near.std, "mean_trained": near.mean}
                last = evaluated[-1].place
                self.found(first.place, f"{USAGE}{name}/std", evidence, until=last, steps=len(evaluated))

    def _differ(self, trained: list[_Looked], evaluated: list[_Looked]) -> bool:
        largest, smallest = max(one.std for one in trained), min(one.std for one in trained)
        if not largest:
            return False
        are_larger = min(one.std for one in evaluated) > self.ratio * largest
        are_smaller = 0 < max(one.std for one in evaluated) < smallest / self.ratio
        return are_larger or are_smaller or self._are_far(trained, evaluated)

    def _are_far(self, trained: list[_Looked], evaluated: list[_Looked]) -> bool:
        """Tell whether all means of evaluation are far from all of training, on the same side."""
        widest = max(one.std for one in (*trained, *evaluated))
        means = [[one.mean for one in some] for some in (trained, evaluated)]
        between = max(min(means[1]) - max(means[0]), min(means[0]) - max(means[1]))
        return between > self.ratio * widest


def _is_integer_in_training(step: StepView, numbers: Numbers) -> bool:
    return bool(numbers.get(INTEGERS)) and step.mode is ModeKeys.TRAIN
