"""Scripts run in forks of a process that has imported their framework: the same runs without the seconds of imports."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")
TIMEOUT = 300


class WarmProcess:
    """A process that has imported modules, in which scripts are run one at a time.

    Args:
        python: the interpreter, and its options.
        modules: what it imports. They are not run before a script runs.
        environment: its variables, of which frameworks read some when they are imported.
    """

    def __init__(self, python: tuple[str, ...], modules: tuple[str, ...], environment: dict[str, str]) -> None:
        self._python = python
        command = [*python, str(SERVER), *modules]
        # What it says while it imports.
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end
        # Without a buffer: of an answer that has been read ahead, ``select`` knows nothing.
        self._process = subprocess.Popen(
            command, 0, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
        )
        atexit.register(self._end)

    def run(
        self,
        words: list[str],
        environment: dict[str, str],
        folder: Path,
        site_hook: Path | None = None,
        killed_when: Callable[[], bool] | None = None,
        taken_down: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a script as ``subprocess.run([python, *words], capture_output=True, text=True)`` does.

        Args:
            words: the script and its arguments.
            environment: its variables.
            folder: in which it runs.
            site_hook: the file that starts the agent; without it, there is none.
            killed_when: it is killed once this says so, unless it has ended by then; asked every millisecond.
            taken_down: modules of libraries are taken down at its end, as an interpreter does, which takes a while.

        Raises:
            RuntimeError: the process could not import its modules.
            subprocess.TimeoutExpired: it took longer than ``TIMEOUT`` seconds, and was killed.
        """
        with tempfile.NamedTemporaryFile("r") as stdout, tempfile.NamedTemporaryFile("r") as stderr:
            job = {"words": words, "environment": environment, "folder": str(folder), "taken_down": taken_down}
            files = {"stdout": stdout.name, "stderr": stderr.name, "site_hook": site_hook and str(site_hook)}
            self._send(json.dumps({**job, **files}))
            pid = int(self._answer())
            late = threading.Event()
            timer = threading.Timer(TIMEOUT, lambda: (late.set(), os.kill(pid, signal.SIGKILL)))
            timer.start()
            if killed_when is not None:
                self._kill(pid, killed_when)
            status = int(self._answer())
            timer.cancel()
            command = [*self._python, *words]
            if late.is_set():
                raise subprocess.TimeoutExpired(command, TIMEOUT, stdout.read(), stderr.read())
            code = os.waitstatus_to_exitcode(status)
            return subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())

    def _kill(self, pid: int, when: Callable[[], bool]) -> None:
        # The answer comes when it has ended, after which the number may be another process's.
        while not select.select([self._process.stdout], [], [], 0.001)[0]:
            if when():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return

    def _send(self, line: str) -> None:
        rest = memoryview(f"{line}\n".encode())
        while rest:
            rest = rest[self._process.stdin.write(rest) :]

    def _answer(self) -> bytes:
        answer = self._process.stdout.readline()
        if not answer:
            self._said.seek(0)
            raise RuntimeError(f"{self._process.args} has ended: {self._said.read()}")
        return answer

    def _end(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()


_processes: dict[object, WarmProcess] = {}


def warm_process(
    modules: tuple[str, ...], environment: dict[str, str], python: tuple[str, ...] = (sys.executable,)
) -> WarmProcess:
    """Return the process for these modules and this environment, in which it matters not what the agent is told."""
    own = {k: v for k, v in environment.items() if not k.startswith(("SMD", "USE_SMDEBUG", "PYTEST_CURRENT_TEST"))}
    key = (python, modules, *sorted(own.items()))
    if key not in _processes:
        _processes[key] = WarmProcess(python, modules, own)
    return _processes[key]
