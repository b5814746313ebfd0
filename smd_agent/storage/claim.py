"""The right to write into a run's folder: of the process named in its claim file, as long as it lives.

A folder that holds a finished run is refused.

Two processes that both take themselves for the only worker would overwrite each other's files. The old library left
an empty claim file behind after a crash and then wrote nothing on the next start; ours names its owner, so that the
claim of a dead process is taken over.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats.paths import CLAIM, END_MARKER
from smd_agent.regular_file import read_text

_LARGEST_BYTES = 1 << 16


def refuse_finished_run(root: Path) -> None:
    """Raise if the folder holds a finished run.

    Raises:
        SMDebugRuntimeError: it does.
    """
    if (root / END_MARKER).exists():
        raise SMDebugRuntimeError(
            f"The path:{root} already exists and holds a finished run. "
            "Please provide a directory path that does not already exist."
        )


class Claim:
    """The claim file of one run folder."""

    def __init__(self, root: Path) -> None:
        self._path = root / CLAIM
        self._held = False

    def acquire(self) -> str | None:
        """Take the claim; None when it is ours, else a description of the process that has it."""
        if self._held:
            return None
        me = json.dumps(_identity(os.getpid()))
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            owner = self.owner()
            if owner is not None and alive(owner):
                return f"process {owner['pid']} on {owner['host']}"
            fresh = self._path.with_name(f"{CLAIM}.{os.getpid()}.tmp")
            fresh.write_text(me)
            os.replace(fresh, self._path)
        else:
            with os.fdopen(descriptor, "w") as file:
                file.write(me)
        self._held = True
        return None

    def release(self) -> None:
        """Give the claim up; nothing happens when it is not ours."""
        if self._held:
            self._held = False
            self._path.unlink(missing_ok=True)

    def owner(self) -> dict[str, object] | None:
        """Whoever the claim file names (pid, host, start tick); None when it names nobody."""
        try:
            owner = json.loads(read_text(self._path, largest=_LARGEST_BYTES))
        except (OSError, ValueError):
            return None
        return owner if isinstance(owner, dict) and isinstance(owner.get("pid"), int) else None


def _identity(pid: int) -> dict[str, object]:
    return {"pid": pid, "host": socket.gethostname(), "started": _start_time(pid)}


def _start_time(pid: int) -> str | None:
    """Linux's start tick of a process, which tells it from a later one with the same pid; None elsewhere."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19]


def alive(owner: dict[str, object]) -> bool:
    """Whether the process that a claim file names still runs; one on another host is taken to."""
    pid = owner["pid"]
    assert isinstance(pid, int)
    if owner.get("host") != socket.gethostname():
        return True
    if pid == os.getpid():
        return owner.get("started") == _start_time(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return owner.get("started") in (None, _start_time(pid))
