"""UnusualInputs: models that are given NaN, or numbers far from the scale that their layers are made for."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.rules import parameters
from smd_agent.rules.built_in import BuiltInRule, Need
from smd_agent.rules.finding import Severity
from smd_agent.rules.finite import not_finite
from smd_agent.rules.inputs import model_inputs
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import Place, StepView

_OF_LAYERS = ("_(input|output)_[0-9]+$", "/(inputs|outputs)(_[0-9]+)?$")
_STATISTICS = ("mean", "std", "min", "max")

_NOT_FINITE = (
    "The batch holds NaN, and the loss does not show it: a mask, a maximum or a comparison may hide it, or the rows"
    " count for nothing",
    "Look for NaN in the data of this step and in what prepares it; fill it in, or drop the rows",
)


@dataclass
class _Seen:
    """What is known of an input.

    Attributes:
        steps: at how many steps its scale is known.
        far: the places at which it was far from 1.
        evidence: the numbers of the first of them.
    """

    steps: int = 0
    far: list[Place] = field(default_factory=list)
    evidence: dict[str, float] = field(default_factory=dict)


class UnusualInputs(BuiltInRule):
    """Models that are given NaN, or numbers far from the scale that their layers are made for.

    Integers, such as numbers of tokens, are left alone, also as floats where the model has an embedding. So are models
    that scale their inputs themselves: some layer is given, or returns, a tensor of the same shape at a usual scale.
    That is known where layers are saved, too.
    A NaN that reaches the loss is one for LossNotFinite.
    """

    meaning = "an input has NaN and the loss does not; or its mean or standard deviation is far from 1 at most steps"
    parameters = (
        Parameter("largest", parameters.number, 50.0, "largest distance of the mean from 0, and standard deviation"),
        Parameter("smallest", parameters.number, 1e-4, "smallest value of both; inputs of zeros are left alone"),
        Parameter("patience", parameters.whole, 3, "saved steps at which it is so, and at most of all"),
    )
    needs = (Need((CollectionKeys.WEIGHTS, CollectionKeys.BIASES), ("", "mean")),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 3
    severity = Severity.WARNING
    evidence = {
        "mean": "the mean of the input at the first such step",
        "std": "its standard deviation",
        "min": "its smallest element",
        "max": "its largest one",
        "far": "at how many saved steps the scale was far from 1 by then",
        "steps": "at how many saved steps the scale was known by then",
        "nan_count": "elements that are NaN",
    }
    cause = "The data is given as it was read, such as images from 0 to 255 or columns in units of their own"
    advice = "Scale the inputs: images to 0 to 1 or by mean and deviation, columns by those of the training data"

    largest: float
    smallest: float
    patience: int

    def start(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[tuple[str, ModeKeys], _Seen] = {}
        self._has_inputs = False

    @property
    def has_judged(self) -> bool:
        """Whether there were inputs."""
        return super().has_judged and self._has_inputs

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether inputs were saved, as far as that is known."""
        return super().fits(collections) and (not self._steps_seen or self._has_inputs)

    def take(self, step: StepView) -> None:
        """Look at the inputs of a step."""
        names = [name for name in model_inputs(step) if step.dtype(name).startswith(("float", "bfloat"))]
        if not names:
            return
        self._has_inputs = True
        bad = not_finite(step, tuple(names))
        for name in names:
            if name in bad:
                self._look_at_nan(step, name, bad[name])
            else:
                self._look_at_scale(step, name)

    def _look_at_nan(self, step: StepView, name: str, counts: dict[str, float]) -> None:
        losses = step.names(CollectionKeys.LOSSES)
        # An additive mask has minus infinity.
        if counts.get("nan_count") and losses and not not_finite(step, losses):
            cause, advice = _NOT_FINITE
            self.found(step, name, {"nan_count": counts["nan_count"]}, cause=cause, advice=advice)

    def _look_at_scale(self, step: StepView, name: str) -> None:
        numbers = {one: value for one in _STATISTICS for _, value in step.column(one, (name,)).items()}
        scale = max(abs(numbers.get("mean", math.nan)), numbers.get("std", math.nan))
        if math.isnan(scale):
            return
        if _has_embedding(step) and all(numbers.get(one, 0.5).is_integer() for one in ("min", "max")):
            return
        seen = self._seen.setdefault((name, step.mode), _Seen())
        seen.steps += 1
        if (scale > self.largest or 0 < scale < self.smallest) and self._is_taken_as_it_is(step, name):
            seen.evidence = seen.evidence or numbers
            seen.far.append(step.place)
            if len(seen.far) >= self.patience and 2 * len(seen.far) > seen.steps:
                where = step if self.finding_of(step, name) else seen.far[0]
                counts = {"far": len(seen.far), "steps": seen.steps}
                found = self.found(where, name, {**seen.evidence, **counts})
                found.last_step, found.steps = step.step, len(seen.far)
        elif 2 * len(seen.far) <= seen.steps and len(seen.far) >= self.patience:
            self.withdraw(step, name)

    def _is_taken_as_it_is(self, step: StepView, name: str) -> bool:
        """Tell whether layers are known, and none of them has the input at a usual scale."""
        names = step.without(step.names(patterns=_OF_LAYERS), (name,))
        shape = step.shape(name)
        alike = tuple(other for other in names if step.shape(other) == shape)
        means, deviations = (dict(step.column(one, alike).items()) for one in ("mean", "std"))
        usual = (self.smallest <= max(abs(means[one]), deviations.get(one, 0.0)) <= self.largest for one in means)
        return bool(names) and not any(usual)


def _has_embedding(step: StepView) -> bool:
    """Tell whether a weight is one of an embedding, by its name."""
    return any("embed" in name.lower() for name in step.names(CollectionKeys.WEIGHTS))
