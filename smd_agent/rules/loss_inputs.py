"""The kind of input that a loss expects: known by its name in PyTorch, and by what was saved of it elsewhere.

Also the base of the rules that look at that.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.finding import Severity
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

_OF_PYTORCH = ("cross_entropy_loss", "binary_cross_entropy_with_logits_loss")


class Expected(enum.Enum):
    """What a loss expects."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    LOGARITHMS = "logarithms of probabilities"


def expected_by(of: str, numbers: Mapping[str, float]) -> Expected | None:
    """Return what a loss expects; None where it is none of probabilities.

    Args:
        of: the loss, such as ``loss/cross_entropy_loss_0``.
        numbers: facts of it by name.
    """
    function = of.partition("/")[2].rpartition("_")[0]
    if function == "nll_loss" or numbers.get("expects_logarithms"):
        return Expected.LOGARITHMS
    if function in _OF_PYTORCH or numbers.get("expects_logits"):
        return Expected.LOGITS
    return Expected.PROBABILITIES if "expects_logits" in numbers else None


def is_of_yes_or_no(of: str) -> bool:
    """Tell whether each number that a loss is given is a class of its own, so that a sigmoid belongs to it."""
    return "binary" in of.lower()


class Fault(NamedTuple):
    """What is wrong with the input of a loss; an empty cause or advice is that of the rule."""

    cause: str
    severity: Severity
    advice: str = ""


class RuleOfLossInputs(RuleOfUsage):
    """A rule that looks at what losses are given in training, and finds what is so at some saved steps in a row."""

    parameters = (Parameter("patience", parameters.whole, 3, "saved steps in a row"),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 3
    kind = "loss"

    patience: int

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with the input of a loss, such as ``loss/cross_entropy_loss_0``."""
        raise NotImplementedError

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one loss."""
        found = self.fault(of, numbers)
        if self.row(of, found is not None) >= self.patience and found is not None:
            evidence = {name: numbers[name] for name in self.evidence if name in numbers}
            fact = next(fact for fact in self.facts if fact in numbers)
            self.found(step, f"{USAGE}{of}/{fact}", evidence, **found._asdict())
