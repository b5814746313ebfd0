"""SaturatedActivation: tanh and sigmoid layers of which most units are at an end of their range."""

from __future__ import annotations

import math
import re

import numpy as np

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Names, Need, Severity, StepView
from smd_agent.rules.parameters import Parameter, names, number, whole
from smd_agent.rules.unit_activity import activity

_KIND = re.compile("tanh|sigmoid", re.IGNORECASE)
_FEWEST_ELEMENTS = 8
# How far the mean of a softmax, multiplied by the number of classes, may be from 1.
_SOFTMAX = 1e-3
# Part of the largest slope: at random inputs, those of tanh have a standard deviation of 5 then.
_FLAT = 0.15


class SaturatedActivation(BuiltInRule):
    """Tanh and sigmoid layers of which most units are at an end of their range.

    By its documented defaults it looks at the inputs of such layers by their names, which have to be saved whole; one
    without "tanh" in its name is that of a sigmoid. `check` looks at the `saturated_share` of outputs, which is of
    units held at one end; and at the mean slope of the layer, which is small where units go from one end to the other.
    It follows from the outputs: 1 - y² of tanh, y - y² of a sigmoid. A last layer that has learned its task is at the
    ends, and rightly; so a layer is found that is there from the first saved step on. A softmax is told by its mean. It
    is a note where the name has neither "tanh" nor "sigmoid": a mask looks alike.
    """

    meaning = "most units of a layer are held at an end of tanh or sigmoid from the first saved step to the last"
    collection_names = Parameter.of_collections()
    tensor_regex: Parameter[tuple[str, ...] | None] = Parameter(
        names,
        None,
        "regular expressions: inputs in whose names one is found; all outputs with a saturated_share otherwise",
        documented=(".*tanh_input|.*sigmoid_input",),
    )
    threshold_tanh_min = Parameter(number, -9.4999, "lower end of the inputs of tanh")
    threshold_tanh_max = Parameter(number, 9.4999, "upper end of the inputs of tanh")
    threshold_sigmoid_min = Parameter(number, -23.0, "lower end of the inputs of sigmoid")
    threshold_sigmoid_max = Parameter(number, 16.99999, "upper end of the inputs of sigmoid")
    threshold_inactivity = Parameter(number, 1.0, "percent of inputs between the ends: a unit with less is one")
    threshold_layer = Parameter(number, 50.0, "percent of such units above which a layer is found")
    patience = Parameter(whole, 5, "saved steps in a row", documented=1)
    brings = {"activation_input": {"include_regex": ".*tanh_input|.*sigmoid_input"}}
    chosen_by = ("collection_names", "tensor_regex")
    # Runs of layers have gradients.
    only_with = CollectionKeys.GRADIENTS
    modes = TRAINING
    fewest_steps = 5
    severity = Severity.WARNING
    evidence = {
        "saturated_percent": "saturated units, in percent of the layer's",
        "slope": "mean slope of the layer at what it gets, as part of the largest one, where it is that which is small",
    }
    cause = "What the layer gets is too large: inputs that are not scaled, or weights that begin too large"
    advice = "Scale the inputs to about 0 plus or minus 1, begin with smaller weights, or normalise before the layer"
    short = "saturated: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        collections, patterns = self.collection_names or (), self.tensor_regex or ()
        self._of_inputs = bool(collections or patterns)
        if self._of_inputs:
            self.needs = (Need(collections, ("",), patterns, "inputs to --save, with --raw"),)
        else:
            saved_by = "layers to --save, with --reductions statistics"
            self.needs = (Need((), ("saturated_share",), saved_by=saved_by),)
        self.fewest_steps = min(self.fewest_steps, self.patience)
        self._begun = False

    def take(self, step: StepView) -> None:
        """Look at the layers of a step."""
        names = self.needs[0].names(step)
        if self._of_inputs:
            for name in names:
                percent = self._percent(step, name) or 0.0
                row = self.row(name, percent > self.threshold_layer)
                if row and row >= self.patience:
                    self.found(step, name, {"saturated_percent": percent})
            return
        self._from_the_first_on(step, names)

    def _from_the_first_on(self, step: StepView, names: Names) -> None:
        percents = {name: 100 * share for name, share in step.column("saturated_share", names).items()}
        flat = self._flat(step, tuple(percents))
        if not self._begun:
            self._begun = True
            self._in_a_row = dict.fromkeys(percents, 0)
        for name, percent in percents.items():
            if name not in self._in_a_row:
                continue
            shape = step.shape(name)
            if (
                (percent <= self.threshold_layer and name not in flat)
                or not shape
                or not min(shape)
                or _is_softmax(step, name, shape)
            ):
                del self._in_a_row[name]
                self.withdraw(step, name)
            # At the least: whatever axis the units lie along, there are no more of them than along the longest.
            elif int(np.prod(shape)) // max(shape) >= _FEWEST_ELEMENTS and self.row(name, True) >= self.patience:
                severity = Severity.WARNING if _KIND.search(name) else Severity.NOTE
                evidence = {"saturated_percent": percent} | ({"slope": flat[name]} if name in flat else {})
                self.found(step, name, evidence, severity=severity)

    def _flat(self, step: StepView, names: Names) -> dict[str, float]:
        """Return the mean slopes of layers that are flat for most of what they get, as part of the largest slope."""
        columns = {of: dict(step.column(of, names).items()) for of in ("mean", "l2", "min", "max")}
        found = {}
        for name in names:
            numbers = {of: column.get(name, math.nan) for of, column in columns.items()}
            size = step.size(name)
            if not size or not -1 <= numbers["min"] <= numbers["max"] <= 1:
                continue
            square = numbers["l2"] ** 2 / size
            if numbers["min"] < 0:
                slope = 1 - square
            elif _KIND.search(name):
                slope = 4 * (numbers["mean"] - square)
            else:
                continue
            if slope < _FLAT:
                found[name] = max(slope, 0.0)
        return found

    def _percent(self, step: StepView, name: str) -> float | None:
        value = step.value(name)
        if value is None or value.dtype.kind not in "fiu" or not value.size:
            return None
        if "tanh" in name.lower():
            low, high = self.threshold_tanh_min, self.threshold_tanh_max
        else:
            low, high = self.threshold_sigmoid_min, self.threshold_sigmoid_max
        between = (value > low) & (value < high)
        return float(100 * np.mean(activity(between) < self.threshold_inactivity))


def _is_softmax(step: StepView, name: str, shape: tuple[int, ...]) -> bool:
    """Tell whether the elements along an axis add up to 1 on average, as those of a sure classifier do, too."""
    mean, lowest = (step.column(of, (name,)).get(name) for of in ("mean", "min"))
    return (
        mean is not None
        and lowest is not None
        and lowest >= 0
        and any(abs(mean * size - 1) < _SOFTMAX for size in shape)
    )
