"""A look at how this Python starts: one is started, asked to capture, and asked what became of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

from smd_agent.config import env
from smd_agent.image.within import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SECONDS = 120
# The folder that "-c" puts before all others is not that of a script.
_CODE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
if any(type(one).__name__ == "_FrameworkFinder" for one in sys.meta_path):
    {then}
"""
_TELL = "from smd_agent.image.within import tell; tell()"
_ARMED = f"print({MARK + '{}'!r})"


@dataclass(frozen=True)
class Look:
    """What became of an interpreter.

    Attributes:
        armed: whether the agent was started in it.
        failure: why it did not come to run code at all; empty if it did.
        said: what was said on stderr, by whomever.
        facts: what `within.tell` tells, if it was asked for.
    """

    armed: bool
    failure: str = ""
    said: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def look(options: Sequence[str] = (), *, by_path: bool = True, facts: bool = False) -> Look:
    """Start this Python as for a program that is to be captured, and look at it before that program's first line.

    Args:
        options: of the interpreter.
        by_path: whether PYTHONPATH counts.
        facts: whether what a capture imports is imported, and told of.
    """
    code = _CODE.format(then=_TELL if facts else _ARMED)
    # Whether it is switched off says nothing about the Python.
    changes: dict[str, str | None] = {env.HOOK: "{}", env.USE: None, env.STRICT: None}
    if not by_path:
        changes["PYTHONPATH"] = None
    try:
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            env=env.for_child(changes),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Look(False, failure=str(error))
    said = tuple(done.stderr.splitlines())
    told = [line[len(MARK) :] for line in done.stdout.splitlines() if line.startswith(MARK)]
    failure = f"exit code {done.returncode}: {said[-1] if said else 'no reason is given'}" if done.returncode else ""
    return Look(bool(told), failure, said, json.loads(told[-1]) if told else {})
