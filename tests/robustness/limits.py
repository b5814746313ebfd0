"""Runs the cases of a part in processes of their own, whose memory and time are limited.

A case that takes too long, fails, or takes its process with it is a failure with the case's number; the others go on.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from robustness.part import Part

HERE = Path(__file__).resolve().parent.parent


@dataclass
class Result:
    """How often a part's cases ended in which way, and what was not survived: (case, what happened)."""

    ends: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, other: Result) -> None:
        """Take in the result of other cases."""
        self.ends += other.ends
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)


class _TooLongError(BaseException):
    """Passes every ``except Exception`` on its way."""


def run(part: Part, cases: range, jobs: int = 1) -> Result:
    """Run the cases, spread over this many processes at a time."""
    size = -(-len(cases) // jobs)
    shares = [cases[start : start + size] for start in range(0, len(cases), size)]
    total = Result()
    running = [_Share(part, share) for share in shares]
    for share in running:
        total.add(share.wait())
    total.failures.sort()
    return total


class _Share:
    """Some of the cases, in one process after another until all have been done."""

    def __init__(self, part: Part, cases: range) -> None:
        self._part = part
        self._cases = cases
        self._log = tempfile.NamedTemporaryFile("r", prefix="robustness-", suffix=".log")  # noqa: SIM115
        self._start(cases.start)

    def _start(self, first: int) -> None:
        words = [self._part.module, self._part.name, str(first), str(self._cases.stop), self._log.name]
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robustness.limits", *words],
            env={**inherited, "PYTHONPATH": str(HERE)},
            # Not the root of the sources: what is installed is what is put through it.
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> Result:
        """Return how the cases ended."""
        result = Result()
        while True:
            errors = self._communicate()
            begun = None
            for line in self._log.read().splitlines():
                kind, case, *rest = json.loads(line)
                if kind == "begin":
                    begun = case
                    continue
                begun = None
                if kind == "end":
                    result.ends[rest[0]] += 1
                else:
                    result.failures.append((case, rest[0]))
                result.slowest = max(result.slowest, rest[1])
            if self._process.returncode == 0:
                self._log.close()
                return result
            if begun is None:
                self._log.close()
                raise RuntimeError(f"the cases of {self._part.module} cannot be run: {errors}")
            result.failures.append((begun, f"the process ended with {self._process.returncode}"))
            self._start(begun + 1)

    def _communicate(self) -> str:
        try:
            limit = self._part.seconds * (2 + len(self._cases) / 10)
            return self._process.communicate(timeout=limit)[1][-2000:]
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.communicate()[1][-2000:]


def _main(module: str, name: str, first: str, stop: str, log: str) -> None:
    part: Part = getattr(importlib.import_module(f"robustness.{module}"), name)
    folder = Path(tempfile.mkdtemp(prefix=f"robustness-{module}-", dir=_memory_disk()))
    try:
        part.prepare(folder)
        if part.memory_bytes is not None:
            _limit_memory(part.memory_bytes)
        signal.signal(signal.SIGALRM, _on_alarm)
        with open(log, "a") as file:
            for case in range(int(first), int(stop)):
                print(json.dumps(["begin", case]), file=file, flush=True)
                print(json.dumps(_one(part, case, folder)), file=file, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(part: Part, case: int, folder: Path) -> list[object]:
    start = os.times().elapsed
    signal.setitimer(signal.ITIMER_REAL, part.seconds)
    try:
        kind, end = "end", part.attempt(part.case(case), folder)
    except _TooLongError:
        kind, end = "fail", f"takes longer than {part.seconds} s"
    except BaseException as error:
        kind, end = "fail", _described(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return [kind, case, end, os.times().elapsed - start]


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "smd_agent" in frame.filename] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    return f"{type(error).__name__} in {place}: {str(error)[:1500]}"


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise _TooLongError


def _limit_memory(further: int) -> None:
    # Elsewhere the limit has no effect, or counts what is not used.
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + further,) * 2)


def _memory_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    _main(*sys.argv[1:])
