"""Trainings that are killed at a random moment: what they list can be read, and is what the whole run has."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.part import Case, Part
from robustness.training import GLUON, KERAS, PYTORCH, XGBOOST, Training, listed


def _after(seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _with_steps(root: Path, steps: int, seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed since a run has listed so many steps."""
    reached: list[Callable[[], bool]] = []

    def when() -> bool:
        if not reached and len(listed(root)) >= steps:
            reached.append(_after(seconds))
        return bool(reached) and reached[0]()

    return when


def part(name: str, title: str, training: Training, sample: int) -> Part:
    """Return the part of one framework."""

    def attempt(case: Case, folder: Path) -> str:
        if training.missing:
            return "not tried: there is no interpreter with it"
        root, ended = folder / "run", None
        # One that has ended was faster than the one by which the moment was chosen.
        latest, last = training.seconds, training.steps - 1
        while ended is None or ended.returncode == 0:
            shutil.rmtree(root, ignore_errors=True)
            if case.number % 2:
                when = _after(case.uniform(0, latest))
            else:
                when = _with_steps(root, case.randint(1, last), case.uniform(0, latest / training.steps))
            ended = training.run(folder, SITE_HOOK, killed_when=when)
            latest, last = latest * 0.9, max(1, last - 1)
        steps = training.check_listed(folder / "run")
        assert ended.returncode == -signal.SIGKILL, f"ended with {ended.returncode}: {ended.stderr[-300:]}"
        return "killed before a step was listed" if not steps else "killed with steps, all readable"

    told = (
        f"`tests/subjects/{training.script}`, which saves everything in every step, is killed by `SIGKILL` at a random "
        "moment, in every other case one after a random number of steps is listed. "
        "Whatever the folder then lists is read, and compared with what the whole run has, bit by bit."
    )
    return Part("kills", title, told, 200, training.prepare, attempt, 120, None, name, sample)


WITH_PYTORCH = part("WITH_PYTORCH", "Killed trainings with PyTorch", PYTORCH, 6)
WITH_KERAS = part("WITH_KERAS", "Killed trainings with Keras", KERAS, 4)
WITH_GLUON = part("WITH_GLUON", "Killed trainings with Gluon", GLUON, 4)
WITH_XGBOOST = part("WITH_XGBOOST", "Killed trainings with XGBoost", XGBOOST, 6)
