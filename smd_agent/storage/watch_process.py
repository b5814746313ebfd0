"""The process that asks rules while training goes on, as the training has it: its start, and what it says.

It is ``smd_agent.live``. What it finds comes through a pipe, by lines; a thread waits for them, which takes no time of
the training's. The lines are written by the program's process, because the other one has none of the program's files:
a pipe of the program's is at its end when the program is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smd_agent import guard
from smd_agent.process_age import start_of
from smd_agent.storage.after_fork import do_in_children, leave_to_children
from smd_agent.storage.side_process import CannotStart, start_beside
from smd_agent.storage.writer_thread import start_thread

if TYPE_CHECKING:
    from smd_agent.storage.worker_place import RunPlace

_LARGEST_READ = 1 << 16
# As they lie beside the interpreter's own libraries, or elsewhere.
_NEEDED = ("smd_agent", "numpy", "wrapt", "google.protobuf", "crc32c")
# Without the variables, the user's folders and the folder of the script, whose files may be called like any library.
_OPTIONS = ("-I", "-c")
_PROGRAM = """\
import json, sys
job = json.load(sys.stdin)
sys.path += job["path"]
from smd_agent.live.watcher import watch
watch(job)
"""


class WatchProcess:
    """The process of one run of this one.

    Args:
        told: what it is told beside the run and this process: the rules, and what is done when they find something.
        environment: gives its variables.
        teller: makes what is given each finding, on the thread that hears of it.
    """

    def __init__(
        self,
        told: Mapping[str, Any],
        environment: Callable[[], Mapping[str, str]],
        teller: Callable[[], Callable[[Mapping[str, Any]], object]],
    ) -> None:
        self._told = told
        self._environment = environment
        self._teller = teller
        self._root: Path | None = None
        self._output = -1

    def begin(self, at: RunPlace) -> None:
        """Have the run in a place watched, unless it is already, or there is no folder; called on the writer thread."""
        root, shown = at.root, at.location
        if not at.entered or root == self._root:
            return
        self._root = root
        try:
            self._output = self._start(
                {"root": str(root), "shown": shown, "goes_on": at.folder.goes_on_after is not None}
            )
        except CannotStart as why:
            line = f"no rule looks on while training: {why}; afterwards: python -m smd_agent check {shown}"
            guard.say_once(("no watcher", root), line)
            return
        do_in_children(self._drop)
        hear = partial(self._hear, self._output, partial(at.store.add_late, root))
        start_thread("smd_agent-findings", hear, "listening to the rules")

    def begin_anew(self) -> None:
        """Forget it, in a process that a fork has made."""
        self._drop()
        self._root = None

    def _start(self, run: Mapping[str, Any]) -> int:
        pid = os.getpid()
        started = start_of(pid)
        if started is None or not sys.executable:
            raise CannotStart("the system does not tell of processes" if started is None else "there is no Python")
        path = [_folder_of(name) for name in _NEEDED]
        job = {**self._told, **run, "program": [pid, started], "path": [*dict.fromkeys(path)]}
        arguments = [sys.executable, *_OPTIONS, _PROGRAM]
        return start_beside(arguments, self._environment(), json.dumps(job).encode())

    def _drop(self) -> None:
        leave_to_children(self._drop)
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    # On its thread.
    def _hear(self, output: int, upload: Callable[[str], None]) -> None:
        other, ended = "", False
        tell = self._teller()
        for line in _lines(output):
            said = _said(line)
            if said is None:
                other = line or other
                continue
            if "wrote" in said:
                upload(str(said["wrote"]))
            if "say" in said:
                guard.say(str(said["say"]))
            if "found" in said:
                guard.attempt(partial(tell, said["found"]))
            ended |= bool(said.get("ended"))
        if output == self._output:
            self._output = -1
        os.close(output)
        if not ended:
            why = f" ({other})" if other else ""
            guard.say(f"no rule looks on any more while training{why}: python -m smd_agent check {self._root}")


def _folder_of(package: str) -> str:
    """The folder that a package or module of one file is imported from."""
    file = Path(str(import_module(package).__file__))
    return str(file.parents[package.count(".") + (file.stem == "__init__")])


def _said(line: str) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _lines(descriptor: int) -> Iterator[str]:
    left = b""
    while data := os.read(descriptor, _LARGEST_READ):
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").strip()
    yield left.decode(errors="replace").strip()
