"""A run of the script that is verified: started, waited for, and what it has left."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smd_agent.config import env
from smd_agent.framework.observer import PARTS
from smd_agent.patches.declared import declared
from smd_agent.verify.records import Process, processes, unobserved

_LOOKS = 0.2


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Args:
        folder: of its records.
        code: its exit code; of a signal, minus its number.
        seconds: from its start to its end.
        stdout: what it has printed.
        stderr: what it has said.
    """

    folder: Path
    code: int
    seconds: float
    stdout: bytes
    stderr: bytes

    def names(self) -> list[str]:
        """The processes that were observed."""
        return processes(self.folder)

    def process(self, name: str) -> Process:
        """One of them."""
        return Process(self.folder, name)

    @property
    def unobserved(self) -> int:
        """How many Python processes it has started that were not."""
        return unobserved(self.folder)


def run(program: str, words: Sequence[str], folder: Path, steps: int, tell: Callable[[], object]) -> Run:
    """Run a program to its end, observed; it reads nothing from stdin.

    Args:
        program: the file to execute.
        words: its argv.
        folder: for its records, which is made.
        steps: after which it is ended; 0 to let it end.
        tell: called while it runs.

    Raises:
        OSError: it cannot be started.
    """
    folder.mkdir()
    parts = [(name, framework.observer) for name, framework in declared().items()]
    (folder / PARTS).write_text("".join(f"{name} {file}\n" for name, file in parts if file), "utf-8")
    env.put(env.OBSERVER, f"{os.getpid()}:{steps}:{folder}")
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        started = time.monotonic()
        process = subprocess.Popen(
            words, executable=program, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, close_fds=True
        )
        try:
            while True:
                try:
                    code = process.wait(_LOOKS)
                    break
                except subprocess.TimeoutExpired:
                    tell()
        finally:
            if process.poll() is None:
                # We are interrupted, and so is it; it may have to save something.
                process.wait()
            env.put(env.OBSERVER, None)
        seconds = time.monotonic() - started
    return Run(folder, code, seconds, out.read_bytes(), err.read_bytes())
