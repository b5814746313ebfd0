"""Three runs of a script, two without the agent and one with it, and the verdict on them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from smd_agent.config import env
from smd_agent.framework.observer import MAIN, PARTS
from smd_agent.patches.declared import declared
from smd_agent.verify.first_difference import Compared, Difference, first_difference, unseeded_generators
from smd_agent.verify.printed_lines import Printed, compare
from smd_agent.verify.record_parser import Process, processes, unobserved

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
        """Number of Python processes it has started that were not observed."""
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


class Outcome(Enum):
    """The outcome of comparing the runs."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_DETERMINISTIC = "not deterministic"


@dataclass(frozen=True)
class Verdict:
    """The outcome of the comparison.

    Args:
        outcome: how the runs compare.
        difference: the first one between the runs with and without the agent; of a script that is not deterministic,
            that between the two runs without it.
        compared: what was the same in the runs with and without the agent.
        stdout: what was printed.
        stderr: what was said.
        code: the exit code of the run without the agent, in words.
        unseeded: generators that the program has not seeded.
        versions: of the frameworks, by import name.
        failures: why a process was not observed to its end.
        processes: names of the processes that were observed.
        unobserved: how many other Python processes the program has started.
    """

    outcome: Outcome
    difference: Difference | None
    compared: Compared
    stdout: Printed
    stderr: Printed
    code: str
    unseeded: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    unobserved: int = 0


def judge(plain: Run, again: Run, agent: Run) -> Verdict:
    """Compare two runs without the agent with each other, and the first of them with the one with it."""
    compared, unseeded = Compared(), set[str]()
    versions, failures = dict[str, str](), list[str]()
    own: list[Difference] = []
    found: list[Difference] = []
    names = [*dict.fromkeys(name for run in (plain, again, agent) for name in run.names())]
    for name in names:
        here, there, with_agent = (run.process(name) for run in (plain, again, agent))
        generators = unseeded_generators(here, there)
        unseeded |= generators
        between = first_difference(here, there, Compared(), generators)
        caused = first_difference(here, with_agent, compared, generators)
        own += _in(name, between)
        found += _in(name, caused)
        versions |= here.versions
        for process in (here, there, with_agent):
            failures += [failure for failure in process.failures if failure not in failures]
    printed = [compare("stdout", plain.stdout, again.stdout, agent.stdout)]
    printed.append(compare("stderr", plain.stderr, again.stderr, agent.stderr))
    own += _of_ends(plain, again)
    if not compared.steps and not own:
        own += [one for one in [printed[0].own] if one is not None]
    found += _of_ends(plain, agent)
    found += [one.difference for one in printed if one.difference is not None]
    outcome, difference = _outcome(own, found)
    return Verdict(
        outcome,
        difference,
        compared,
        printed[0],
        printed[1],
        in_words(plain.code),
        unseeded,
        versions,
        failures,
        names,
        agent.unobserved,
    )


def in_words(code: int) -> str:
    """An exit code, or the signal that it stands for."""
    if code >= 0:
        return str(code)
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _outcome(own: list[Difference], found: list[Difference]) -> tuple[Outcome, Difference | None]:
    by_itself = min(own, key=lambda one: one.order, default=None)
    by_agent = min(found, key=lambda one: one.order, default=None)
    # What differs with the agent before the script differs by itself is the agent's.
    if by_itself is not None and (by_agent is None or by_itself.order <= by_agent.order):
        return Outcome.NOT_DETERMINISTIC, by_itself
    if by_agent is not None:
        return Outcome.DIFFERENT, by_agent
    return Outcome.EQUAL, None


def _in(name: str, found: Difference | None) -> list[Difference]:
    if found is None:
        return []
    if name == MAIN:
        return [found]
    return [Difference(found.what, found.here, found.there, found.step, found.at_end, name.replace("-", " "))]


def _of_ends(one: Run, other: Run) -> list[Difference]:
    if one.code == other.code:
        return []
    return [Difference("exit code", in_words(one.code), in_words(other.code))]
