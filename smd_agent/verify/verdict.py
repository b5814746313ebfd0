"""Three runs of a script, two without the agent and one with it, and the verdict on them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from smd_agent.config import env
from smd_agent.framework.observer import MAIN, PARTS
from smd_agent.guard import PREFIX
from smd_agent.patches.declared import declared
from smd_agent.printable import shortened
from smd_agent.verify.first_difference import Compared, Difference, first_difference, unseeded_generators
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


# The program may have begun a line when the agent writes one.
_OURS = re.compile(re.escape(PREFIX.encode()) + rb"[^\n]*\n")
# A number with its point, an identifier in hexadecimal digits and a time of day are one word each.
_WORD = re.compile(rb"((?:[^\s=,;|()\[\]{}<>'\"]|(?<=\d),(?=\d))+)")
# How long something took, which two runs may have in common by chance: 1s, 0.5min, 52ms/step.
_TIME = re.compile(rb"\d+(?:\.\d+)?(?:(?:n|u|\xc2\xb5|\xce\xbc|m)?s|min|h)(?:/\w+)?")
_PADDING = re.compile(rb"[ \t]+")
_LONGEST = 120


@dataclass(frozen=True)
class Printed:
    """The lines that the runs have printed on one stream.

    Args:
        lines: how many the first run has.
        ours: how many lines of the agent's own were left out.
        varying: numbers of lines, from 1, that differ between the runs without the agent.
        own: the first of them as both have it.
        counted: the runs without the agent have the same number of lines.
        difference: where the run with the agent differs from them otherwise.
    """

    lines: int
    ours: int
    varying: tuple[int, ...]
    own: Difference | None
    counted: bool
    difference: Difference | None


def compare(stream: str, plain: bytes, again: bytes, agent: bytes) -> Printed:
    """Compare what two runs without the agent and one with it have printed.

    Of a line that differs between the first two, the words are compared that are the same in both. Where these have
    not the same number of lines, nothing is compared.
    """
    ours = len(_OURS.findall(agent))
    here, there, with_agent = (_OURS.sub(b"", text).split(b"\n") for text in (plain, again, agent))
    counted = len(here) == len(there)
    varying = [number for number, (one, other) in enumerate(zip(here, there, strict=False)) if one != other]
    if not counted:
        varying = varying[:1] or [min(len(here), len(there))]
    own = _difference(stream, here, there, varying[0]) if varying else None
    found = None
    if counted:
        both = zip(here, there, with_agent, strict=False)
        other = (number for number, texts in enumerate(both) if not _same(*texts))
        number = next(other, None)
        if number is None and len(here) != len(with_agent):
            number = min(len(here), len(with_agent))
        found = None if number is None else _difference(stream, here, with_agent, number)
    return Printed(_count(plain), ours, tuple(number + 1 for number in varying), own, counted, found)


def _difference(stream: str, here: list[bytes], there: list[bytes], number: int) -> Difference:
    return Difference(f"line {number + 1} of {stream}", _shown(here, number), _shown(there, number))


def _same(one: bytes, other: bytes, third: bytes) -> bool:
    """True if the third is as the first two are alike."""
    if one == other:
        return third == one
    parts = [_WORD.split(_PADDING.sub(b" ", text)) for text in (one, other, third)]
    if len({len(texts) for texts in parts}) > 1:
        return True
    both = (texts for texts in zip(*parts, strict=True) if texts[0] == texts[1])
    return all(mine == third or bool(_TIME.fullmatch(mine)) for mine, _, third in both)


def _shown(lines: list[bytes], number: int) -> str:
    if number >= len(lines) or (number == len(lines) - 1 and not lines[number]):
        return "no such line"
    return repr(shortened(lines[number].decode(errors="replace"), _LONGEST))


def _count(text: bytes) -> int:
    return len(text.splitlines())


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
