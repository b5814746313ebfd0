"""Follow a run while it goes on: losses and metrics, how fast it is, and what rules find as soon as they find it.

On a terminal it is a screen that is drawn again every few seconds; into a file or a pipe it is a line for each look
that brings new steps. It may be started before the run. It ends when the run has ended, or with Ctrl-C, which the
training does not notice: it may run on another machine that sees the folder.

STEPS/S is the rate of the last saved training steps, from the times at which they were written.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smd_agent import guard
from smd_agent.analysis.run_summary import state_of
from smd_agent.analysis.trial import Trial
from smd_agent.analysis.unusual_tensors import Course, Effort, look_at
from smd_agent.cli.courses import course_lines
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import is_awaited, open_run
from smd_agent.cli.output import draw, emit, emit_all, own_screen
from smd_agent.cli.run_folders import incomplete_lines
from smd_agent.cli.verdict import group_lines
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import index_path
from smd_agent.printable import count_of, number_text, printable, shortened_within
from smd_agent.rules.finding import Finding, alike
from smd_agent.rules.judging import Judging
from smd_agent.rules.registry import rules_of_run
from smd_agent.rules.verdict_in_time import ShortLook, in_one_line
from smd_agent.storage.worker_files_reader import read_failures

# Read at a look: a run that is long already is read evenly in parts, within a second or two.
_EFFORT = Effort(numbers=100_000, bytes=100_000_000, largest=1_000_000)
_FOLLOWED = (CollectionKeys.LOSSES, CollectionKeys.METRICS)
# Saved steps from whose times the rate is taken: the last few, so that it is that of now.
_RATED = 20


@dataclass
class Look:
    """The news that a look at a run has brought.

    Attributes:
        steps: the steps that are new, counted over all modes.
        verdict: what the rules say by now.
        findings: those that are new, the ones that are alike together.
        ended: whether nothing more will come.
        state: what has become of the run, in a few words.
    """

    steps: list[int]
    verdict: ShortLook
    findings: list[list[Finding]]
    ended: bool
    state: str


@dataclass
class LiveRun:
    """A run that is looked at again and again.

    Args:
        trial: the run.

    Attributes:
        trial: the same.
        courses: how its losses and metrics go, losses first.
    """

    trial: Trial
    _courses: dict[tuple[str, ModeKeys], Course] = field(default_factory=dict)
    _told: set[tuple[object, ...]] = field(default_factory=set)
    _seen: int = -1

    def __post_init__(self) -> None:
        # New steps are wanted; files that are announced and not there are not waited for.
        self.trial.dynamic_refresh = True
        self._judging = Judging(self.trial, rules_of_run(self.trial))

    @property
    def courses(self) -> list[Course]:
        """The losses and metrics of all modes, losses first."""
        return sorted(self._courses.values(), key=lambda one: (not one.is_loss, one.name, one.mode.value))

    def look(self) -> Look:
        """Take in what is new."""
        # Before the steps: what is written while they are read is left for the next look.
        state = state_of(self.trial)
        self._judging.take_new(incomplete=True)
        known = self.trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
        steps = [step for step in known if step > self._seen]
        self._seen = max(steps, default=self._seen)
        self._follow(steps)
        verdict = self._judging.verdict()
        new = [group for group in alike(verdict.findings) if self._is_new(group)]
        ended = self.trial.loaded_all_steps or state.startswith("was cut off")
        failed = bool(read_failures(self.trial.root))
        return Look(steps, ShortLook(verdict, verdict.steps, verdict.steps, failed=failed), new, ended, state)

    def rate(self) -> float | None:
        """Training steps a second, over the last saved ones; None where they are too few."""
        table = self.trial.step_table
        own = table.steps(ModeKeys.TRAIN, incomplete=True)[-_RATED:]
        if len(own) < 2:
            return None
        first, last = (_written(self.trial, step) for step in (own[0], own[-1]))
        if first is None or last is None or last <= first:
            return None
        return (own[-1] - own[0]) / (last - first)

    def _follow(self, steps: Sequence[int]) -> None:
        collections = self.trial.collections()
        wanted = [collections[name] for name in _FOLLOWED if name in collections]
        names = [name for name in self.trial.tensor_names() if any(one.matches(name) for one in wanted)]
        if not names or not steps:
            return
        for course in look_at(self.trial, names, collections, ModeKeys.GLOBAL, steps, _EFFORT).courses:
            known = self._courses.setdefault((course.name, course.mode), course)
            if known is not course:
                known.points += course.points

    def _is_new(self, group: Sequence[Finding]) -> bool:
        first = group[0]
        key = (first.rule, first.severity, first.cause, first.advice)
        if key in self._told:
            return False
        self._told.add(key)
        return True


def _written(trial: Trial, step: int) -> float | None:
    """The time at which a training step was written, in seconds since the epoch; None if that is not known."""
    files = trial.step_table.files(step, ModeKeys.TRAIN).values()
    try:
        return max(os.stat(Path(trial.root, index_path(file.step, file.worker))).st_mtime for file in files)
    except (OSError, ValueError):
        return None


SECONDS = 2.0
_SHORTEST = 0.1
# A line, not a screen: so many losses and metrics of each mode.
_IN_A_LINE = 3
_LONGEST_NAME = 40
_LINES_OF_COURSES = 12


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run; it need not be there yet")
    words = f"time between two looks, in seconds (default: {SECONDS:g})"
    parser.add_argument("--every", type=float, default=SECONDS, metavar="S", help=words)


def run(args: argparse.Namespace) -> int:
    """Show the run until it has ended; 1 if a rule has found a problem."""
    if not args.every >= _SHORTEST:
        raise CommandError(f"--every is {args.every:g}, and {_SHORTEST:g} seconds is the shortest", USAGE_ERROR)
    live = LiveRun(_awaited(args.run, args.every))
    look = _on_screen(live, args.every) if sys.stdout.isatty() else _in_lines(live, args.every)
    return 1 if look.verdict.verdict.has_problem else 0


def _awaited(path: str, seconds: float) -> Trial:
    """Open a run, if need be as soon as it is there."""
    told = False
    while is_awaited(path):
        if not told:
            guard.say(f"there is no run in {printable(path)} yet; waiting for it (Ctrl-C ends this)")
            told = True
        time.sleep(seconds)
    return open_run(path)


def _on_screen(live: LiveRun, seconds: float) -> Look:
    with own_screen():
        while True:
            look = live.look()
            if look.ended:
                break
            draw(list(_screen(live, look)))
            time.sleep(seconds)
    emit_all(_screen(live, look))
    return look


def _in_lines(live: LiveRun, seconds: float) -> Look:
    emit(f"Run      {live.trial.path}")
    several = len(live.trial.workers()) > 1
    while True:
        look = live.look()
        if look.steps:
            emit(_line(live, look))
            sys.stdout.flush()
        for group in look.findings:
            emit_all(group_lines(group, several))
            sys.stdout.flush()
        if look.ended:
            break
        time.sleep(seconds)
    emit_all((*incomplete_lines(live.trial.root), _state(look), _verdict(look)))
    return look


def _screen(live: LiveRun, look: Look) -> Iterator[str]:
    yield f"Run      {live.trial.path}"
    yield from incomplete_lines(live.trial.root)
    yield _state(look)
    yield f"Steps    {_steps(live)}"
    yield _verdict(look)
    if live.courses:
        yield ""
        yield from course_lines(live.courses, with_mode=True, most=_LINES_OF_COURSES)
    several = len(live.trial.workers()) > 1
    for group in look.verdict.groups:
        yield ""
        yield from group_lines(group, several)


def _state(look: Look) -> str:
    return f"State    {look.state}"


def _verdict(look: Look) -> str:
    return f"Verdict  {in_one_line(look.verdict, so_far=not look.ended)}"


def _steps(live: LiveRun) -> str:
    table = live.trial.step_table
    parts = []
    for mode in sorted(live.trial.modes(), key=lambda one: one.value):
        own = table.steps(mode, incomplete=True)
        parts.append(f"{mode.name} {own[-1]} ({count_of(len(own), 'saved step')})")
    rate = live.rate()
    if rate is not None:
        parts.append(f"{rate:.3g} steps/s")
    return "; ".join(parts) or "none saved so far"


def _line(live: LiveRun, look: Look) -> str:
    """Say of each mode with new steps where it is, and its losses there."""
    new = {live.trial.mode_modestep(step)[0] for step in look.steps}
    rate = live.rate()
    speed = "" if rate is None else f"  {rate:.3g} steps/s"
    parts = []
    for mode in sorted((one for one in new if one is not None), key=lambda one: one.value):
        step = live.trial.step_table.steps(mode, incomplete=True)[-1]
        own = [course for course in live.courses if course.mode is mode][:_IN_A_LINE]
        parts.append("  ".join((f"{mode.name} step {step}", *map(_last, own))))
    return "; ".join(parts) + speed


def _last(course: Course) -> str:
    return f"{shortened_within(course.name, _LONGEST_NAME)} {number_text(course.points[-1].size)}"
