"""Notes of a worker on itself, beside its steps: with what it ran, where, and how much of its time saving took.

A file of JSON for each worker, ``about/<worker>.json``: ``environment`` has facts as text, by group and name, and
``took`` the seconds of the agent and those of the program, once the run has ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Facts = dict[str, dict[str, str]]

# What a file of somebody else's may make us keep.
_MOST_FACTS = 100
_LONGEST = 500


@dataclass(frozen=True)
class About:
    """What a worker notes of itself.

    Attributes:
        worker: its name.
        environment: facts as text, by group and name.
        took: seconds of the program's time that were the agent's, and all seconds; None as long as it is not known.
    """

    worker: str
    environment: Facts = field(default_factory=dict)
    took: tuple[float, float] | None = None

    @property
    def share(self) -> float | None:
        """Which part of the time was the agent's; None where it is not known."""
        return None if self.took is None else self.took[0] / max(self.took[1], 1e-9)


def to_text(environment: Mapping[str, Mapping[str, str]], took: tuple[float, float] | None) -> str:
    """Return the text of a worker's file."""
    seconds = None if took is None else {"agent": round(took[0], 6), "all": round(took[1], 6)}
    return json.dumps({"environment": environment, "took": seconds})


def about_of(worker: str, text: str) -> About | None:
    """Return what the text of a worker's file says; None where it is none, whoever wrote it."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    return About(worker, _facts(fields.get("environment")), _seconds(fields.get("took")))


def _facts(groups: Any) -> Facts:
    found: Facts = {}
    for group, facts in groups.items() if isinstance(groups, dict) else ():
        if isinstance(facts, dict):
            known = [(name, value) for name, value in facts.items() if isinstance(value, str)][:_MOST_FACTS]
            found[group[:_LONGEST]] = {name[:_LONGEST]: value[:_LONGEST] for name, value in known}
    return found


def _seconds(took: Any) -> tuple[float, float] | None:
    pair = [took.get("agent"), took.get("all")] if isinstance(took, dict) else []
    numbers = [float(one) for one in pair if isinstance(one, (int, float)) and -1 < one < 1e15]
    return (max(numbers[0], 0.0), numbers[1]) if len(numbers) == 2 and numbers[1] > 0 else None
