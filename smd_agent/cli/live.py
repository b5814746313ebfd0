"""A run that is followed while it goes on: what each look at it brings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent.analysis.overview import Effort, look_at
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import index_path
from smd_agent.rules.by_default import rules_of_run
from smd_agent.rules.finding import Finding, alike
from smd_agent.rules.judging import Judging
from smd_agent.rules.verdict_in_time import ShortLook
from smd_agent.storage.state import describe_state
from smd_agent.storage.worker_notes import read_failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smd_agent.analysis.course import Course
    from smd_agent.analysis.trial import Trial

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
        state = describe_state(self.trial.root, self._last_file())
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

    def _last_file(self) -> Path | None:
        steps = self.trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
        if not steps:
            return None
        return Path(self.trial.root, index_path(steps[-1], next(iter(self.trial.step_table.files(steps[-1])))))


def _written(trial: Trial, step: int) -> float | None:
    """When a training step was written, in seconds since the epoch; None if that is not known."""
    files = trial.step_table.files(step, ModeKeys.TRAIN).values()
    try:
        return max(os.stat(Path(trial.root, index_path(file.step, file.worker))).st_mtime for file in files)
    except (OSError, ValueError):
        return None
