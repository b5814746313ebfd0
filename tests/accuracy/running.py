"""Runs a case through the launcher and has `check` judge its run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.programs import ONE_THREAD
from harness.runner import environment

from accuracy.case import Case

# What `check` advises where a run has too few steps to be judged, as these small ones have.
OPTIONS = ("--every", "1")
# The launches of the page, and their options.
DEFAULT, EVERY_STEP = "default", "`--every 1`"
LAUNCHES: dict[str, tuple[str, ...]] = {DEFAULT: (), EVERY_STEP: OPTIONS}
_SECONDS = 300


@dataclass(frozen=True)
class Said:
    """A finding as `check` prints it once, whatever the number of its tensors."""

    severity: str
    rule: str

    def __str__(self) -> str:
        return f"{self.severity} {self.rule}"


@dataclass(frozen=True)
class Result:
    """What `check` says of a run: the number of its saved steps, and the findings in their order."""

    steps: int
    said: tuple[Said, ...]

    def by(self, *severities: str) -> list[str]:
        """Return the rules that have findings of these severities, each once."""
        return list(dict.fromkeys(one.rule for one in self.said if one.severity in severities))

    def rank(self, rules: Iterable[str]) -> int:
        """Return which finding is the first by one of these rules, counted from 1; 0 if there is none."""
        known = {*rules}
        return next((place for place, one in enumerate(self.said, 1) if one.rule in known), 0)


class CaseFailed(Exception):
    """A case could not be run or judged; the message says what was printed."""


def interpreter(case: Case) -> str | None:
    """Return the interpreter that has a case's framework, None where none is known."""
    return os.environ.get("MXNET_PYTHON") or None if case.framework == "Gluon" else sys.executable


def run(case: Case, options: Iterable[str] = OPTIONS, kept: Path | None = None) -> Result:
    """Run a case with the options of the launcher.

    Args:
        case: the case.
        options: of the launcher.
        kept: a folder in which runs stay, by the names of cases; one that is there is judged again, and not trained.

    Raises:
        CaseFailed: it left no run that can be judged.
    """
    python = interpreter(case)
    if python is None:
        raise CaseFailed(f"{case.name}: MXNET_PYTHON names no interpreter")
    with tempfile.TemporaryDirectory(prefix="accuracy-") as folder:
        saved = Path(folder, "run") if kept is None else kept.resolve() / case.name
        told = ""
        if not saved.exists():
            launched = [python, "-m", "smd_agent", "--out", str(saved), *options, str(case.path), *case.args]
            told = _done(launched, folder).stderr
        checked = _done([python, "-m", "smd_agent", "check", str(saved), "--json"], folder)
        try:
            return _result(json.loads(checked.stdout))
        except ValueError as error:
            raise CaseFailed(f"{case.name}: {(told + checked.stderr)[-2000:]}") from error


def run_all(
    cases: Iterable[Case], options: Iterable[str], jobs: int, kept: Path | None = None
) -> Iterator[tuple[Case, Result | CaseFailed]]:
    """Run cases, some at a time, and yield them in their order; for ``kept`` see `run`."""

    def one(case: Case) -> tuple[Case, Result | CaseFailed]:
        try:
            return case, run(case, options, kept)
        except CaseFailed as failed:
            return case, failed

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, cases)


def _done(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    env = environment(**ONE_THREAD)
    try:
        return subprocess.run(command, cwd=Path(folder), env=env, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"took longer than {_SECONDS} s")


def _result(verdict: dict) -> Result:
    # Findings that differ only in tensors and steps are printed as one.
    groups = dict.fromkeys((one["rule"], one["severity"], one["cause"], one["advice"]) for one in verdict["findings"])
    return Result(verdict["steps"], tuple(Said(severity, rule) for rule, severity, _, _ in groups))
