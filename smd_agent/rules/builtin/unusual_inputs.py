"""UnusualInputs: models that are given NaN, or numbers far from the scale that their layers are made for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from smd_agent.framework.training_facts import AS_IT_IS, INTEGERS, USAGE, USED_INPUT
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, ModeKeys, Need, Place, Severity, StepView
from smd_agent.rules.inputs_of_models import model_inputs
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, numbers_of

_OF_LAYERS = ("_(input|output)_[0-9]+$", "/(inputs|outputs)(_[0-9]+)?$")
_PARAMETERS = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
_STATISTICS = ("mean", "std", "min", "max")

_HIDDEN = (
    "The batch holds NaN, and the loss does not show it: a mask, a maximum or a comparison may hide it, or the rows"
    " count for nothing"
)
_REACHES_LOSS = "The batch holds NaN while all weights are finite, and the loss of the step is not finite either"
_FIND = "Look for NaN in the data of this step and in what prepares it; fill it in, or drop the rows"
_COLUMNS = "Columns have units of their own: the root mean square of column {} is {:.4g}, that of column {} is {:.4g}"
_SCALE_COLUMNS = "Scale each column by mean and deviation of the training data, or let the model begin with BatchNorm"

# Of a column's root mean square to another's, from which on they have different units.
_UNITS = 100


class _Found(NamedTuple):
    """The words for an input that is far from 1."""

    evidence: Numbers
    severity: Severity
    cause: str
    advice: str


@dataclass
class _Seen:
    """The numbers of an input.

    Attributes:
        steps: at how many steps its scale is known.
        far: the places at which it was far from 1.
        found: what is said of the first of them.
    """

    steps: int = 0
    far: list[Place] = field(default_factory=list)
    found: _Found | None = None


class UnusualInputs(BuiltInRule):
    """Models that are given NaN, or numbers far from the scale that their layers are made for.

    Integers, such as numbers of tokens, are left alone where no layer with weights is known to be given them as they
    are, and where the model has an embedding, also as floats. So are models that scale or normalise their inputs
    themselves: no layer with weights is given them as they are. Where no layer is seen, as in compiled code, what is
    found is a note.
    Where a run has the inputs and no numbers of how they are used, the layers that are saved tell it: one is given, or
    returns, a tensor of the same shape at a usual scale.
    A NaN that comes with weights that are not finite is one for LossNotFinite.
    """

    meaning = "an input has NaN; or its scale, or that of one of its columns, is far from 1 at most steps"
    largest = Parameter(
        number,
        50.0,
        "largest standard deviation; half the largest distance of the mean from 0, and half the largest root mean"
        " square of a column",
    )
    smallest = Parameter(number, 1e-4, "smallest scale of all; inputs of zeros are left alone")
    patience = Parameter(whole, 3, "saved steps at which it is so, and at most of all")
    brings = {
        "usage": {},
        "weights,biases": {"reductions": "mean"},
        "model_input": {"include_regex": "_input_[0-9]+$", "reductions": "mean,std,min,max,nan_count,inf_count"},
    }
    needs = (Need((CollectionKeys.USAGE, *_PARAMETERS), ("", "mean")),)
    modes = TRAINING
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
        "not_finite": "the share of elements that are NaN or infinite",
        "largest_scale": "the largest root mean square of a column",
        "largest_column": "the number of that column, from 0",
        "smallest_scale": "the smallest root mean square of a column that is not 0",
        "smallest_column": "the number of that column",
    }
    cause = "The data is given as it was read, such as images from 0 to 255 or columns in units of their own"
    advice = "Scale the inputs: images to 0 to 1 or by mean and deviation, columns by those of the training data"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[tuple[str, ModeKeys], _Seen] = {}
        self._has_inputs = False
        self._loss_was_finite = True

    @property
    def is_concerned(self) -> bool:
        """True if there were inputs."""
        return self._has_inputs

    def take(self, step: StepView) -> None:
        """Look at the inputs of a step."""
        losses = step.names(CollectionKeys.LOSSES)
        # Unknown where none is saved.
        loss_is_finite = not not_finite(step, losses) if losses else None
        inputs = {name: one for name, one in numbers_of(step, USED_INPUT).items() if _counts(one)}
        if inputs:
            self._has_inputs = True
            for name, numbers in inputs.items():
                if math.isnan(numbers.get("min", 0.0)):
                    evidence = {"not_finite": numbers["not_finite"]}
                    self._look_at_nan(step, f"{USAGE}{name}/not_finite", evidence, loss_is_finite)
                else:
                    self._look_at_numbers(step, name, numbers)
        else:
            self._look_at_tensors(step, loss_is_finite)
        self._loss_was_finite = self._loss_was_finite and loss_is_finite is not False

    def _look_at_tensors(self, step: StepView, loss_is_finite: bool | None) -> None:
        names = [name for name in model_inputs(step) if step.dtype(name).startswith(("float", "bfloat"))]
        if not names:
            return
        self._has_inputs = True
        bad = not_finite(step, tuple(names))
        for name in names:
            if name not in bad:
                self._look_at_scale(step, name)
            # An additive mask has minus infinity.
            elif bad[name].get("nan_count"):
                self._look_at_nan(step, name, {"nan_count": bad[name]["nan_count"]}, loss_is_finite)

    def _look_at_nan(self, step: StepView, name: str, evidence: Numbers, loss_is_finite: bool | None) -> None:
        if loss_is_finite:
            self.found(step, name, evidence, cause=_HIDDEN, advice=_FIND)
        elif loss_is_finite is False and self._loss_was_finite:
            weights = step.names(*_PARAMETERS)
            if weights and not not_finite(step, weights):
                self.found(step, name, evidence, severity=Severity.PROBLEM, cause=_REACHES_LOSS, advice=_FIND)

    def _look_at_numbers(self, step: StepView, name: str, numbers: Numbers) -> None:
        """Look at the scales of an input, which are saved as numbers."""
        as_it_is = numbers.pop(AS_IT_IS, None)
        scale, column = _scale_of(numbers), numbers.get("largest_scale", 0.0) / 2
        if as_it_is == 0 or not math.isfinite(scale) or _are_tokens(step, numbers):
            return
        cause, advice = self.cause, self.advice
        if numbers.get("smallest_scale", math.inf) * _UNITS < numbers.get("largest_scale", 0.0):
            places = [int(numbers["largest_column"]), numbers["largest_scale"]]
            places += [int(numbers["smallest_column"]), numbers["smallest_scale"]]
            cause, advice = _COLUMNS.format(*places), _SCALE_COLUMNS
        is_far = max(scale, column) > self.largest or 0 < scale < self.smallest
        severity = self.severity if as_it_is else Severity.NOTE
        evidence = {one: value for one, value in numbers.items() if one in self.evidence and one != "not_finite"}
        self._count(step, f"{USAGE}{name}/std", is_far, _Found(evidence, severity, cause, advice))

    def _look_at_scale(self, step: StepView, name: str) -> None:
        """Look at the scale of an input that is saved."""
        numbers = {one: value for one in _STATISTICS for _, value in step.column(one, (name,)).items()}
        scale = _scale_of(numbers)
        if math.isnan(scale) or _are_tokens(step, numbers):
            return
        is_far = (scale > self.largest or 0 < scale < self.smallest) and self._is_taken_as_it_is(step, name)
        self._count(step, name, is_far, _Found(numbers, self.severity, self.cause, self.advice))

    def _count(self, step: StepView, name: str, is_far: bool, what: _Found) -> None:
        seen = self._seen.setdefault((name, step.mode), _Seen())
        seen.steps += 1
        if is_far:
            seen.found = seen.found or what
            seen.far.append(step.place)
            if len(seen.far) >= self.patience and 2 * len(seen.far) > seen.steps:
                evidence, severity, cause, advice = seen.found
                evidence = {**evidence, "far": len(seen.far), "steps": seen.steps}
                self.found(
                    seen.far[0],
                    name,
                    evidence,
                    severity=severity,
                    cause=cause,
                    advice=advice,
                    until=step,
                    steps=len(seen.far),
                )
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


def _counts(numbers: Numbers) -> bool:
    """Tell whether an input is one of floats, or of integers that a layer with weights is given as they are."""
    return not numbers.get(INTEGERS) or numbers.get(AS_IT_IS) == 1


def _scale_of(numbers: Numbers) -> float:
    """The size of an input: its standard deviation, or half the distance of its mean from 0."""
    return max(abs(numbers.get("mean", math.nan)) / 2, numbers.get("std", math.nan))


def _are_tokens(step: StepView, numbers: Numbers) -> bool:
    """Tell whether an input may be one of tokens: whole numbers, where a weight is one of an embedding, by its name."""
    is_whole = all(numbers.get(one, 0.5).is_integer() for one in ("min", "max"))
    return is_whole and any("embed" in name.lower() for name in step.names(CollectionKeys.WEIGHTS))
