"""FirstOutputsTooLarge: a model whose outputs are far too large before it has learned anything."""

from __future__ import annotations

import math

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Numbers, RuleOfUsage

# A loss this far above that of a guess may be one of a few samples.
_BESIDE = 1.0
_CLASSES = (
    "Before the first update the loss is far above that of a guess, so that the model is sure of what is wrong: its"
    " weights begin too large, as those of an Embedding in N(0, 1), or its inputs are not scaled"
)
_NUMBERS = (
    "Before the first update the predictions are spread far more than the targets: weights begin too large, as those of"
    " an Embedding in N(0, 1) that are multiplied with each other, or inputs are not scaled"
)


class FirstOutputsTooLarge(RuleOfUsage):
    """A model whose outputs are far too large before it has learned anything.

    A model that knows nothing should be sure of nothing: its cross entropy is about the logarithm of the number of
    classes, and its predictions of numbers differ no more than their targets. Where they are much larger, the first
    part of the training goes into making them smaller, and some of it may never be unlearned.

    It is judged by the first step of the training alone. Of classes, the loss has to be twice that of a guess, and no
    number makes the logits larger on purpose, as a temperature or the scale of an angular margin does; of
    numbers, the predictions have to be spread at least 4 times as far as the targets, and by more than 1, as small
    targets alone are none.
    """

    meaning = "before the first update, the loss is far above that of a guess, or predictions are far too spread"
    times = Parameter(number, 2.0, "a loss of classes, in losses of a guess")
    spread = Parameter(number, 4.0, "the spread of predictions, in spreads of the targets")
    least = Parameter(number, 1.0, "spread of predictions that is looked at")
    kind = "loss"
    facts = ("loss", "spread")
    modes = TRAINING
    fewest_steps = 1
    severity = Severity.NOTE
    evidence = {
        "loss": "of the first step",
        "guess": "of one who guesses: the logarithm of the number of classes",
        "spread": "the standard deviation of the predictions",
        "target_spread": "the same of the targets",
    }
    advice = "Begin with smaller weights, such as nn.init.normal_(embedding.weight, std=0.02), and scale the inputs"
    short = "outputs too large at first: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one loss of the first step."""
        if step.step:
            return
        loss, classes = numbers.get("loss", math.nan), numbers.get("classes", 0.0)
        spread, wanted = numbers.get("spread", math.nan), numbers.get("target_spread", 0.0)
        is_scaled = numbers.get("scale", 1.0) > 1
        if classes > 1 and not is_scaled and math.isfinite(loss) and loss > self.times * math.log(classes) + _BESIDE:
            evidence = {"loss": loss, "guess": math.log(classes)}
            self.found(step, f"{USAGE}{of}/loss", evidence, cause=_CLASSES)
        elif math.isfinite(spread) and wanted > 0 and spread > max(self.least, self.spread * wanted):
            evidence = {"spread": spread, "target_spread": wanted}
            self.found(step, f"{USAGE}{of}/spread", evidence, cause=_NUMBERS)
