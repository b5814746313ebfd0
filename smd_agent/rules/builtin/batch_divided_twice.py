"""BatchDividedTwice: a mean over a batch, whose gradient the Trainer divides by the size of the batch once more."""

from __future__ import annotations

import re

from smd_agent.rules.built_in import CollectionKeys, Severity, StepView
from smd_agent.rules.usage import Fault, Numbers, UsageInARow

# Optimizers whose updates are as large as the gradient; others divide by its size, and do not mind.
_IN_PROPORTION = ("SGD", "NAG", "DCASGD", "SGLD")
_NOISE = 1e-4


class BatchDividedTwice(UsageInARow):
    """A mean over a batch, whose gradient the Trainer divides by the size of the batch once more.

    The loss that the backward pass starts from is a mean over the samples in the graph of autograd, and the Trainer's
    update multiplies gradients by one divided by as many. Several passes before one update, or on several contexts,
    may be divided by how many passes there are, and by nothing else.

    Optimizers are SGD, NAG, DCASGD and SGLD: the updates of Adam and the like do not depend on the size of gradients.
    With the loss scale of mixed precision nothing is judged.
    """

    meaning = "a backward pass starts from a mean over the batch, and Trainer.step divides by the size of the batch too"
    brings = {"usage": {}, "optimizer": {}}
    kind = "optimizer"
    facts = ("averaged",)
    severity = Severity.WARNING
    evidence = {
        "averaged": "over how many samples the losses are means that the backward passes before an update started from",
        "averages": "how many such losses there are",
        "divided_by": "what the update divides gradients by: what Trainer.step was given",
    }
    cause = (
        "The loss is a mean over the batch, and Trainer.step divides its gradient by the size of the batch once more:"
        " the learning rate is smaller by that factor than it was set to"
    )
    advice = (
        "Call trainer.step(1), or start the backward pass from the losses of all samples, by loss.backward() without"
        " mean()"
    )
    short = "batch divided twice: {}"

    def take(self, step: StepView) -> None:
        """Look at the Trainers of a step, and at what their updates multiply by."""
        self._settings = dict(step.numbers(step.names(CollectionKeys.OPTIMIZER)).items())
        super().take(step)

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one Trainer."""
        rescaled = self._settings.get(f"{of}/rescale_grad", 0.0)
        name = re.sub(r"_\d+$", "", of.partition("/")[2])
        if name not in _IN_PROPORTION or rescaled <= 0 or f"{of}/loss_scale" in self._settings:
            return None
        divided, averaged, averages = 1 / rescaled, numbers["averaged"], numbers.get("averages", 1.0)
        # As many passes as samples may be what is meant.
        if not averaged or divided <= 1 + _NOISE or _are_same(divided, averages):
            return None
        is_twice = _are_same(divided, averaged) or _are_same(divided * averages, averaged)
        return Fault(evidence={"divided_by": divided}) if is_twice else None


def _are_same(one: float, other: float) -> bool:
    return abs(one - other) <= _NOISE * abs(other)
