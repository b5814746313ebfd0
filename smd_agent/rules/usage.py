"""Bases of the rules that look at facts of a program: at the collection ``usage``, or at ``data_facts``.

Also the kind of input that a loss expects: known by its name in PyTorch, and by what was saved of it elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from smd_agent.framework.training_facts import DATA_FACTS, USAGE
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole

Numbers = dict[str, float]
_LOGARITHMS_IN_PYTORCH = ("nll_loss", "kl_div_loss")
_LOGITS_IN_PYTORCH = ("cross_entropy_loss", "binary_cross_entropy_with_logits_loss")


def numbers_of(
    step: StepView, kind: str, collection: str = CollectionKeys.USAGE, prefix: str = USAGE
) -> dict[str, Numbers]:
    """Return the numbers of all of a kind, by what they are of and by name."""
    found: dict[str, Numbers] = {}
    for name, number in step.numbers(step.names(collection)).items():
        of, _, fact = name.removeprefix(prefix).rpartition("/")
        if of.startswith(f"{kind}/"):
            found.setdefault(of, {})[fact] = number
    return found


class RuleOfUsage(BuiltInRule):
    """A rule that looks at numbers of the collection ``usage``; of a run without those of its kind it says nothing.

    Class attributes:
        kind: what they are of, such as ``optimizer``, ``model`` or ``loss``.
        collection, prefix: where the numbers are, and with what their names begin.
        facts: their names, of which one is enough.
    """

    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {"usage": {}}
    kind: ClassVar[str]
    collection: ClassVar[str] = CollectionKeys.USAGE
    prefix: ClassVar[str] = USAGE
    facts: ClassVar[tuple[str, ...]]

    def start(self) -> None:
        """Begin with nothing seen."""
        self._has_any = False

    def take(self, step: StepView) -> None:
        """Look at each one of the kind."""
        for of, numbers in numbers_of(step, self.kind, self.collection, self.prefix).items():
            if any(fact in numbers for fact in self.facts):
                self._has_any = True
                self.look_at(step, of, numbers)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the numbers of one, such as ``optimizer/Adam``, by name."""
        raise NotImplementedError

    def evidence_of(self, numbers: Numbers) -> Numbers:
        """Return those numbers that the rule explains."""
        return {name: numbers[name] for name in self.evidence if name in numbers}

    @property
    def is_concerned(self) -> bool:
        """True if there was anything of its kind."""
        return self._has_any


class Fault(NamedTuple):
    """A fault of one of a kind; what is empty is as the rule has it.

    evidence: numbers beside those that the rule explains.
    """

    cause: str = ""
    severity: Severity | None = None
    advice: str = ""
    evidence: Mapping[str, float] = MappingProxyType({})


class UsageInARow(RuleOfUsage):
    """A rule that finds what is so at some saved steps of training in a row.

    One that tells more than what is wrong at a step has a method `look_at` of its own.
    """

    patience = Parameter(whole, 3, "saved steps in a row")
    modes = TRAINING
    fewest_steps = 3

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one, such as ``loss/cross_entropy_loss_0``, by its numbers."""
        raise NotImplementedError

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one."""
        found = self.fault(of, numbers)
        if self.row(of, found is not None) >= self.patience and found is not None:
            cause, severity, advice, more = found
            fact = next(fact for fact in self.facts if fact in numbers)
            evidence = {**self.evidence_of(numbers), **more}
            self.found(step, f"{USAGE}{of}/{fact}", evidence, severity=severity, cause=cause, advice=advice)


class RuleOfData(RuleOfUsage):
    """A rule that looks at numbers of the collection ``data_facts``; ``kind`` is ``labels`` or ``evaluation``."""

    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {"data_facts": {}}
    collection = CollectionKeys.DATA_FACTS
    prefix = DATA_FACTS


class Expected(enum.Enum):
    """The expectation of a loss."""

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
    if function in _LOGARITHMS_IN_PYTORCH or numbers.get("expects_logarithms"):
        return Expected.LOGARITHMS
    if function in _LOGITS_IN_PYTORCH or numbers.get("expects_logits"):
        return Expected.LOGITS
    return Expected.PROBABILITIES if "expects_logits" in numbers else None


def is_of_yes_or_no(of: str) -> bool:
    """Tell whether each number that a loss is given is a class of its own, so that a sigmoid belongs to it."""
    return "binary" in of.lower()
