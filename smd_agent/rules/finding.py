"""What a rule has found, and what it could not judge."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any

from smd_agent.core.modes import ModeKeys


class Severity(enum.Enum):
    """How bad a finding is.

    A problem is a mistake or a failure, a warning may be one, and a note is worth knowing.
    """

    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"


_ORDER = [*Severity]


@dataclass
class Finding:
    """What a rule has found on one tensor, or on the training as a whole, over a range of steps.

    Attributes:
        rule: the rule's name.
        severity: how bad it is.
        tensor: its name; None where it is about more than one.
        mode: of the steps.
        worker: whose values they are; empty where it is about more than one.
        first_step: the first saved step at which it holds, as the mode counts them.
        last_step: the last one.
        steps: at how many saved steps it holds.
        evidence: numbers by name, of the first step; the rule says what each means.
        cause: the likely cause, one sentence.
        advice: what to try, one sentence.
        global_step: the first step, counted over all modes.
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

    @property
    def order(self) -> tuple[int, int, str, str]:
        """What findings are sorted by, which is severity, first step, rule and tensor."""
        return _ORDER.index(self.severity), self.global_step, self.rule, self.tensor or ""

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON; numbers that are not finite are text, such as ``"nan"``."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        evidence = {name: _json_number(value) for name, value in self.evidence.items()}
        return {**values, "severity": self.severity.value, "mode": self.mode.name, "evidence": evidence}


@dataclass(frozen=True)
class NotJudged:
    """A rule that could not judge a run.

    Attributes:
        rule: the rule's name.
        reason: what it lacks.
        option: what saves that; empty where no option does.
    """

    rule: str
    reason: str
    option: str = ""

    def to_json(self) -> dict[str, str]:
        """Return an object for JSON."""
        return {"rule": self.rule, "reason": self.reason, "option": self.option}


def _json_number(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
