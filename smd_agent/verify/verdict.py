"""The verdict on three runs of a script: two without the agent, one with it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from enum import Enum

from smd_agent.framework.observer import MAIN
from smd_agent.verify.first_difference import Compared, Difference, first_difference, unseeded_generators
from smd_agent.verify.printed import Printed, compare
from smd_agent.verify.running import Run


class Outcome(Enum):
    """How the runs compare."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NOT_DETERMINISTIC = "not deterministic"


@dataclass(frozen=True)
class Verdict:
    """What the comparison has found.

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
