"""Findings of a rule, and values that it could not judge."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.series import PREFIX
from smd_agent.framework.training_facts import USAGE
from smd_agent.printable import count_of


class Severity(enum.Enum):
    """The severity of a finding.

    A problem is a mistake or a failure, a warning may be one, and a note is worth knowing.
    """

    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"

    def is_as_bad_as(self, other: Severity) -> bool:
        """Tell whether this is the same, or worse."""
        return _ORDER.index(self) <= _ORDER.index(other)


_ORDER = [*Severity]
_LOSS = f"{PREFIX}loss"

# These stand behind the others, which are mistakes of the program or the data. Of those that begin at the same step a
# loss that breaks names its cause, what layers do follows from that, and what becomes of tensors from all of it.
_FOLLOWING = {
    **dict.fromkeys(("LossAtGuessing", "LossExploding", "LossNotFinite"), 1),
    **dict.fromkeys(("DeadRelu", "SaturatedActivation", "VanishingGradient"), 2),
    **dict.fromkeys(
        ("AllZero", "ExplodingTensor", "LossNotDecreasing", "NotMoving", "TensorVariance", "UnchangedTensor"), 3
    ),
}


@dataclass
class Finding:
    """A finding of a rule on one tensor, or on the training as a whole, over a range of steps.

    Attributes:
        rule: the rule's name.
        severity: how bad it is.
        tensor: its name; None where it is about more than one.
        mode: of the steps.
        worker: whose values they are; empty where it is about more than one.
        first_step: the first step at which it holds, as the mode counts them.
        last_step: the last one.
        steps: at how many steps it holds, saved ones unless it is on a number of the series.
        evidence: numbers by name, of the first step; the rule says what each means.
        cause: the likely cause, one sentence.
        advice: what to try, one sentence.
        global_step: the first step, counted over all modes.
        line: of the program that it is about, with its source; empty if that is not known.
        every_step: whether steps that were not saved are counted, too, of a tensor that was.
        short: the same in a few words; ``{}`` stands for the names of tensors.
    """

    rule: str
    severity: Severity
    tensor: str | None
    mode: ModeKeys
    worker: str
    first_step: int
    last_step: int
    evidence: dict[str, Any] = field(default_factory=dict)
    cause: str = ""
    advice: str = ""
    steps: int = 1
    global_step: int = 0
    short: str = ""
    line: str = ""
    every_step: bool = False

    @property
    def order(self) -> tuple[int, bool, int, int, str, str]:
        """The sort key of findings, by severity, causes before what follows, first step, rule and tensor."""
        follows = _FOLLOWING.get(self.rule, 0)
        severity, name = _ORDER.index(self.severity), self.tensor or ""
        return severity, follows > 0, self.global_step, follows, self.rule, name

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON; numbers that are not finite are text, such as ``"nan"``."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        evidence = {name: _json_number(value) for name, value in self.evidence.items()}
        words = {"severity": self.severity.value, "mode": self.mode.name, "short": self.in_short(self.tensor or "")}
        return {**values, **words, "evidence": evidence}

    def in_short(self, names: str) -> str:
        """Return what was found in a few words.

        Args:
            names: of the tensors; empty where it is about none.
        """
        words = self.short or _spoken(self.rule) + (": {}" if names else "") + f" at step {self.first_step}"
        return words.replace("{}", names)


def about(tensor: str) -> str:
    """The subject of a finding on a tensor: of a fact of the training the part that has it, such as ``SGD``."""
    return "/".join(tensor.split("/")[2:-1]) or tensor if tensor.startswith(USAGE) else tensor


def alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Put findings together that differ only in their tensors and steps."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.rule, one.severity, one.cause, one.advice), []).append(one)
    return [*groups.values()]


def steps_in_words(findings: Iterable[Finding]) -> str:
    """Return at how many steps the findings on some tensors hold; on numbers of the series, saved ones or not."""
    found = [*findings]
    of_all = any(one.every_step or (one.tensor or "").startswith(PREFIX) for one in found)
    noun = "step" if of_all else "saved step"
    return count_of(max(one.steps for one in found), noun)


def without_doubles(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings of one rule, of those on the loss of the series and on a saved one that which begins first.

    Where both begin at one step it is that on the saved one, of which more is known; one that is less bad never stands
    for another one.
    """
    found = [*findings]
    of_series = [one for one in found if one.tensor == _LOSS]
    saved = [one for one in found if one.tensor is not None and one.tensor != _LOSS]
    left_out = {id(one) for one in of_series if any(_stands_for(other, one, 0) for other in saved)}
    left_out |= {id(one) for one in saved if any(_stands_for(other, one, 1) for other in of_series)}
    return [one for one in found if id(one) not in left_out]


def _stands_for(one: Finding, other: Finding, steps_before: int) -> bool:
    is_of_same = (one.mode, one.worker) == (other.mode, other.worker)
    return (
        is_of_same and one.first_step + steps_before <= other.first_step and one.severity.is_as_bad_as(other.severity)
    )


@dataclass(frozen=True)
class Lack:
    """Something that a rule needs and that no step had.

    Attributes:
        words: what it is, as a sentence.
        options: what saves it, by the collection that holds it then; an empty name where any could.
        in_any_form: whether any tensor of these collections is enough, in whatever form it was saved.
    """

    words: str
    options: Mapping[str, str]
    in_any_form: bool = False

    @property
    def held_by(self) -> tuple[str, ...]:
        """The collections that could hold it; none where any could."""
        return tuple(filter(None, self.options))


@dataclass(frozen=True)
class NotJudged:
    """A rule that could not judge a run.

    Attributes:
        rule: the rule's name.
        reason: what it lacks.
        option: what saves that; empty where no option does.
        too_few_steps: whether all that it needs was saved, only not often enough.
        never_came_up: whether this training does not have what it needs, whatever is saved.
        lacking, modes: what no step had, and of which modes such a step has to be.
    """

    rule: str
    reason: str
    option: str = ""
    too_few_steps: bool = False
    never_came_up: bool = False
    lacking: tuple[Lack, ...] = ()
    modes: tuple[ModeKeys, ...] = ()

    def to_json(self) -> dict[str, str | bool]:
        """Return an object for JSON."""
        return {name: getattr(self, name) for name in ("rule", "reason", "option", "too_few_steps", "never_came_up")}


def _spoken(name: str) -> str:
    """Return the name of a class as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()


def _json_number(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
