"""Notes of a worker beside its steps, as text: what it ran with, what saving took of its time, what failed or is lost.

Each is a file of JSON for each worker. In ``about/<worker>.json``, ``environment`` has facts as text, by group and
name, and ``took`` the seconds of the agent and those of the program, once the run has ended. In
``failures/<worker>.json``, which is there only if something failed, ``failures`` is a list, the first one first; each
has the fields of ``core.failure_record.Failure``. ``lost/<worker>.json`` is written by ``storage.worker_files``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from smd_agent.core.failure_record import Failure
from smd_agent.core.json_fields import object_in

Facts = dict[str, dict[str, str]]

# What a file of somebody else's may make us keep.
_MOST_FACTS = 100
_LONGEST = 500
LARGEST_FAILURES = 1 << 20
_MOST_FAILURES = 1000
_LONGEST_WORDS = 2000
_KINDS = {field.name: {"str": str, "int": int, "bool": bool}[str(field.type)] for field in fields(Failure)}


@dataclass(frozen=True)
class About:
    """The notes of a worker on itself.

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
        """The agent's part of the time; None where it is not known."""
        return None if self.took is None else self.took[0] / max(self.took[1], 1e-9)


def about_text(environment: Mapping[str, Mapping[str, str]], took: tuple[float, float] | None) -> str:
    """Return the text of a worker's file."""
    seconds = None if took is None else {"agent": round(took[0], 6), "all": round(took[1], 6)}
    return json.dumps({"environment": environment, "took": seconds})


def about_of(worker: str, text: str) -> About | None:
    """Return what the text of a worker's file says; None where it is none, whoever wrote it."""
    fields = object_in(text)
    if fields is None:
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


@dataclass(frozen=True)
class Lost:
    """The losses that the folder of a run tells of a worker; see ``worker_files.LostSteps``."""

    worker: str
    count: int
    gone: int
    steps: tuple[int, ...]
    reason: str


def lost_of(worker: str, text: str | bytes) -> Lost | None:
    """Return what the text of a worker's file says; None where it is none, whoever wrote it."""
    try:
        fields: dict[str, Any] = json.loads(text)
        steps = tuple(int(step) for step in fields["steps"])
        count, gone = int(fields["count"]), int(fields["gone"])
        return Lost(worker, count, gone, steps, str(fields["reason"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def failures_text(failures: Iterable[Failure]) -> str:
    """Return the text of a worker's file."""
    return json.dumps({"failures": [asdict(failure) for failure in failures]})


def failures_of(text: str) -> list[Failure]:
    """Return what the text of a worker's file says, whoever wrote it; what cannot be read is left out."""
    listed = (object_in(text) or {}).get("failures")
    known = (_failure(one) for one in listed[:_MOST_FAILURES]) if isinstance(listed, list) else ()
    return [failure for failure in known if failure is not None]


def in_words(failure: Failure) -> str:
    """The cost of a failure, and its reason, in a sentence."""
    again = "" if failure.times == 1 else f" {failure.times} times"
    why = f"{failure.doing} failed{again} ({failure.error})"
    if failure.off:
        lost = "nothing is" if failure.domain == "steps" else f"{failure.domain} are not"
        return f"{lost} saved after step {failure.last}: {why}"
    steps = f"step {failure.step}" if failure.last == failure.step else f"steps {failure.step} to {failure.last}"
    steps = steps if failure.last >= 0 else "the first step"
    lost = f"{steps} may be incomplete" if failure.domain == "steps" else f"{failure.domain} of {steps} may be missing"
    return f"{lost}: {why}"


def _failure(values: Any) -> Failure | None:
    if not isinstance(values, dict) or any(type(values.get(name)) is not kind for name, kind in _KINDS.items()):
        return None
    known: dict[str, Any] = {name: values[name] for name in _KINDS}
    known.update((name, value[:_LONGEST_WORDS]) for name, value in known.items() if isinstance(value, str))
    return Failure(**known)
