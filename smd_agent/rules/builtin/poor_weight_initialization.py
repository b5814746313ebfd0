"""PoorWeightInitialization: signs in the first steps that the weights begin too large, too small or too alike."""

from __future__ import annotations

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Need, Severity, StepView
from smd_agent.rules.parameters import Parameter, names, number, whole


class PoorWeightInitialization(BuiltInRule):
    """Signs in the first steps that the weights begin too large, too small or too alike.

    There are three: inputs of activations with a far larger variance than those of others, gradients of which nearly
    all elements are the same, and a loss that does not fall.
    """

    meaning = "in the first saved steps, variances of layers differ much, a gradient is flat, or the loss does not fall"
    activation_inputs_regex: Parameter[tuple[str, ...] | None] = Parameter(
        names,
        ("(?i).*relu.*_input",),
        "regular expressions: inputs of activations in whose names one is found",
        documented=(".*relu_input",),
    )
    threshold = Parameter(number, 10.0, "largest variance divided by the smallest, at a step")
    distribution_range = Parameter(number, 0.001, "distance between the 5th and 95th percentile of a gradient")
    patience = Parameter(whole, 5, "saved steps in a row without a loss below the lowest")
    steps = Parameter(number, 10.0, "how many saved steps are looked at")
    brings = {"relu_input": {"include_regex": ".*relu_input", "reductions": "std", "save_interval": 500}}
    brings_always = {"gradients": {"reductions": "p5,p95"}, "losses": {}}
    chosen_by = ("activation_inputs_regex",)
    modes = TRAINING
    only_by_name = True
    severity = Severity.NOTE
    evidence = {
        "variance_ratio": "variance of the input of this activation divided by the smallest one",
        "range": "distance between the 5th and 95th percentile of this gradient, the smallest of all",
        "in_a_row": "at how many saved steps in a row this loss had not fallen",
    }
    cause = "The initial weights are too large or too small for the width of their layers"
    advice = "Use the initialisation that belongs to the activation: He for ReLU, Xavier for tanh; or normalise"

    def start(self) -> None:
        """Begin with nothing seen."""
        collections = (CollectionKeys.GRADIENTS, CollectionKeys.LOSSES)
        self.needs = (Need(collections, ("", "p5", "std"), self.activation_inputs_regex or ()),)
        self._taken = 0
        self._lowest: dict[str, float] = {}

    def take(self, step: StepView) -> None:
        """Look at one of the first steps."""
        self._taken += 1
        if self._taken > self.steps:
            return
        self._look_at_activations(step)
        self._look_at_gradients(step)
        for name, loss in step.numbers(step.names(CollectionKeys.LOSSES)).items():
            falls = name not in self._lowest or loss < self._lowest[name]
            self._lowest[name] = loss if falls else self._lowest[name]
            row = self.row(name, not falls)
            if row >= self.patience:
                self.found(step, name, {"in_a_row": row})

    def _look_at_activations(self, step: StepView) -> None:
        if not self.activation_inputs_regex:
            return
        names = step.names(patterns=self.activation_inputs_regex)
        variances = {name: std**2 for name, std in step.column("std", names).items()}
        variances |= dict(step.column("variance", names).items())
        if len(variances) > 1:
            name, smallest = max(variances, key=variances.__getitem__), min(variances.values())
            if variances[name] > self.threshold * smallest:
                ratio = variances[name] / smallest if smallest else float("inf")
                self.found(step, name, {"variance_ratio": ratio})

    def _look_at_gradients(self, step: StepView) -> None:
        names = step.names(CollectionKeys.GRADIENTS)
        low, high = step.column("p5", names), dict(step.column("p95", names).items())
        ranges = {name: high[name] - at_5 for name, at_5 in low.items() if name in high}
        name = min(ranges, key=ranges.__getitem__, default=None)
        if name is not None and ranges[name] < self.distribution_range:
            self.found(step, name, {"range": ranges[name]})
