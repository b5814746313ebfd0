"""Failures of the agent in one worker, as a file of the run: JSON, ``failures/<worker>.json``.

``failures`` is a list, the first one first; each has the fields of ``core.failure.Failure``. The file is there only if
something failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from smd_agent.core.failure import Failure

LARGEST_BYTES = 1 << 20

# What a file of somebody else's may make us keep.
_MOST = 1000
_LONGEST = 2000
_KINDS = {field.name: {"str": str, "int": int, "bool": bool}[str(field.type)] for field in fields(Failure)}


def to_text(failures: Iterable[Failure]) -> str:
    """Return the text of a worker's file."""
    return json.dumps({"failures": [asdict(failure) for failure in failures]})


def failures_of(text: str) -> list[Failure]:
    """Return what the text of a worker's file says, whoever wrote it; what cannot be read is left out."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    listed = found.get("failures") if isinstance(found, dict) else None
    known = (_failure(one) for one in listed[:_MOST]) if isinstance(listed, list) else ()
    return [failure for failure in known if failure is not None]


def in_words(failure: Failure) -> str:
    """What a failure has cost, and why, in a sentence."""
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
    known.update((name, value[:_LONGEST]) for name, value in known.items() if isinstance(value, str))
    return Failure(**known)
