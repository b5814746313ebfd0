"""DeadRelu: layers of which most units are 0 for whatever they are given."""

from __future__ import annotations

import re

import numpy as np

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Names, Need, Severity, StepView
from smd_agent.rules.known_parameters import known_parameters
from smd_agent.rules.parameters import Parameter, names, number, whole
from smd_agent.rules.unit_activity import activity, dead_beyond_chance

_RELU = re.compile("relu", re.IGNORECASE)
_ALL = 100.0
_FROM_THE_FIRST = (
    "It gives nothing but zeros from the first step on: its biases, its weights or what it is given hold all of its "
    "units below 0, and what lies before it gets no gradient"
)
_OF_ZEROS = (
    "It gives nothing but zeros, and its own weights stay as they are: an adapter such as LoRA that is frozen, or gets"
    " no gradient, adds nothing"
)
_TRAIN_IT = (
    "Check that the adapter can be trained (requires_grad), that the optimizer has its parameters, and that gradients"
    " reach them"
)


class DeadRelu(BuiltInRule):
    """Layers of which most units are 0 for whatever they are given.

    By its documented defaults it looks at outputs by their names. Where they are saved whole, a unit is dead that is
    above 0 in less than `threshold_inactivity` percent of its elements; where only `dead_share` is saved, one that is 0
    in all. `check` looks at the `dead_share` of all outputs that are nowhere below 0. In a small batch units are 0 by
    chance: as many as the others, by their own zeros, lead to expect are taken off. An output that has no "relu" in
    its name may be sparse by nature, as that of pixels at the border: of it the share has to rise, unless it is all.
    A model often learns well with the units that are left, so that it is a note up to 90 percent.
    """

    meaning = "most units of a layer are 0 throughout the batch, at several steps in a row and to the end"
    tensor_regex: Parameter[tuple[str, ...] | None] = Parameter(
        names,
        None,
        "regular expressions: outputs in whose names one is found; all with a dead_share otherwise",
        documented=(".*relu_output",),
    )
    threshold_inactivity = Parameter(number, 1.0, "percent of activity below which a unit is dead")
    threshold_layer = Parameter(number, 50.0, "percent of dead units above which a layer is found")
    most = Parameter(number, 90.0, "percent of dead units from which on it is a warning, and no note", documented=0.0)
    patience = Parameter(whole, 5, "saved steps in a row", documented=1)
    rise = Parameter(
        number,
        25.0,
        "by how many percent of the units it has to be more than at the first step; at 0 nothing is left out",
        documented=0.0,
    )
    samples = Parameter(whole, 8, "elements of each unit that a step must have", documented=0)
    brings = {"relu_output": {"include_regex": ".*relu_output", "save_interval": 500}}
    chosen_by = ("tensor_regex",)
    # Runs of layers have gradients.
    only_with = CollectionKeys.GRADIENTS
    modes = TRAINING
    fewest_steps = 5
    severity = Severity.WARNING
    evidence = {
        "dead_percent": "dead units, in percent of the layer's",
        "at_first": "the same at the first saved step of the layer",
    }
    cause = "An update has pushed the units so far below 0 that they are active for no input, and learn no more"
    advice = "Lower the learning rate, warm it up, check the initial biases, or use LeakyReLU or GELU"
    short = "dead units: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        patterns = self.tensor_regex or ()
        statistics = ("", "dead_share") if patterns else ("dead_share",)
        self.needs = (Need((), statistics, patterns, "layers to --save, with --reductions statistics"),)
        self.fewest_steps = min(self.fewest_steps, self.patience)
        self._first: dict[str, float] = {}
        # Parameters that cannot be trained, by what was told of them last.
        self._frozen: list[str] = []

    def take(self, step: StepView) -> None:
        """Look at the outputs of a step."""
        for facts in known_parameters(step).values():
            self._frozen = [name for name, fact in facts.items() if not fact.requires_grad]
        names = self.needs[0].names(step)
        found = self._beyond_chance(step, names) if self.samples else self._as_they_are(step, names)
        for name, percent in found.items():
            first = self._first.setdefault(name, percent)
            is_dead = percent > self.threshold_layer and (
                not self.rise or bool(_RELU.search(name)) or percent - first >= self.rise or percent == _ALL
            )
            row = self.row(name, is_dead)
            if row >= self.patience:
                cause, advice = (_FROM_THE_FIRST, "") if first == _ALL and self.patience > 1 else ("", "")
                if percent == _ALL and self._is_of_zeros(step, name):
                    cause, advice = _OF_ZEROS, _TRAIN_IT
                severity = Severity.WARNING if percent >= self.most else Severity.NOTE
                numbers = {"dead_percent": percent, "at_first": first}
                finding = self.found(step, name, numbers, severity=severity, cause=cause, advice=advice)
                if severity.is_as_bad_as(finding.severity):
                    finding.severity = severity
            elif not row and self.patience > 1:
                self.withdraw(step, name)

    def _as_they_are(self, step: StepView, names: Names) -> dict[str, float]:
        found = {name: 100 * share for name, share in step.column("dead_share", names).items()}
        for name in names if self.tensor_regex else ():
            value = step.value(name)
            if value is not None and value.dtype.kind in "fiub" and value.size:
                found[name] = float(100 * np.mean(activity(value > 0) < self.threshold_inactivity))
        return found

    def _beyond_chance(self, step: StepView, names: Names) -> dict[str, float]:
        shares = step.column("dead_share", names)
        # What is taken off matters only to those above the threshold, and to what the first step is remembered by.
        found = {name: 100 * share for name, share in shares.items()}
        looked_at = [
            name for name, percent in found.items() if percent > self.threshold_layer or name not in self._first
        ]
        if not looked_at:
            return found
        zeros, lowest = (dict(step.column(one, shares.names).items()) for one in ("zero_share", "min"))
        for name in looked_at:
            share = found.pop(name) / 100
            zero = zeros.get(name)
            shape = step.shape(name) if lowest.get(name) == 0 else None
            # At the least: whatever axis the units lie along, there are no more of them than along the longest.
            count = int(np.prod(shape)) // max(shape) if shape and min(shape) else 0
            if zero is None or count < self.samples:
                continue
            found[name] = 100 * dead_beyond_chance(share, zero, count)
        return found

    def _is_of_zeros(self, step: StepView, output: str) -> bool:
        """Tell whether the layer of an output has a weight that is frozen, or is all 0 and has no bias beside it."""
        layer = output.rpartition("_output_")[0]
        if any(name.endswith(f"{layer}.weight") for name in self._frozen):
            return True
        names = tuple(name for name in step.names(CollectionKeys.WEIGHTS) if name.endswith(f"{layer}.weight"))
        if any(name.endswith(f"{layer}.bias") for name in step.names(CollectionKeys.BIASES)):
            return False
        return any(share == 1 for _, share in step.column("zero_share", names).items())
