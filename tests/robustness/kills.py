"""Trainings that are killed at a random moment: what they list can be read, and is what the whole run has."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
from harness.runner import SITE_HOOK

from robustness.part import Case, Part
from robustness.training import EVERYTHING, GLUON, KERAS, PYTORCH, XGBOOST, Training
from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import SERIES_FOLDER

# Of each there is a row: pauses between the rows of short steps begin after a thousand.
STEPS = 100
# After a step has ended, in seconds.
_SOON = 0.005


@dataclass
class NotedTraining(Training):
    """A training that notes the loss of each step once that has ended.

    config: what of it is saved.
    losses: of all steps, without the agent.
    """

    config: dict[str, Any] = field(default_factory=lambda: EVERYTHING)
    losses: list[float] = field(default_factory=list)

    def run(
        self,
        folder: Path,
        site_hook: Path | None,
        name: str = "run",
        killed_when: Callable[[], bool] | None = None,
        **more: str,
    ) -> CompletedProcess[str]:
        (folder / "notes").unlink(missing_ok=True)
        ended = super().run(folder, site_hook, name, killed_when, **more)
        if site_hook is None:
            self.losses = noted(folder)
        return ended

    def hook(self, folder: Path, name: str) -> dict[str, Any]:
        return self.config

    def variables(self, folder: Path) -> dict[str, str]:
        return {"NOTES": str(folder / "notes"), "STEPS": str(STEPS)}

    def check_listed(self, root: Path, complete: bool = True) -> int:
        # How much is saved by default depends on the time that it takes.
        return super().check_listed(root, complete and self.config is EVERYTHING)

    def check_series(self, folder: Path) -> str:
        """Assert that the series has a row of each step, but for the one that has ended last; return its age."""
        ended, rows = len(noted(folder)), losses_in(folder / "run")
        assert len(rows) <= len(self.losses), f"{len(rows)} rows of {len(self.losses)} steps"
        np.testing.assert_allclose(rows, self.losses[: len(rows)], rtol=1e-5)
        assert ended - len(rows) <= 1, f"{ended} steps have ended, and the series has {len(rows)}"
        if not ended:
            return "killed before a step had ended"
        return f"killed, the last row is {'one step old' if len(rows) < ended else 'of the newest step'}"


def noted(folder: Path) -> list[float]:
    """Return the losses of the steps that have ended."""
    notes = folder / "notes"
    return [float(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def losses_in(root: Path) -> list[float]:
    """Return the losses of a run's training steps, which its series must have without a gap."""
    if not (root / SERIES_FOLDER).exists():
        return []
    trial = create_trial(str(root), timeout=0)
    table = trial.series().get("steps")
    assert not trial.problems, f"problems: {trial.problems}"
    if table is None:
        return []
    # Rounds of boosting have no mode.
    is_training = np.isin(table.modes, [ModeKeys.TRAIN.value, ModeKeys.GLOBAL.value])
    steps = table.mode_steps[is_training].tolist()
    assert steps == [*range(len(steps))], f"the series has gaps: {steps}"
    losses: list[float] = table["series/loss"][is_training].tolist()
    return losses


def _after(seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _with_steps(folder: Path, steps: int, seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed since a training has noted so many steps."""
    reached: list[Callable[[], bool]] = []

    def when() -> bool:
        if not reached and len(noted(folder)) >= steps:
            reached.append(_after(seconds))
        return bool(reached) and reached[0]()

    return when


def part(name: str, title: str, plain: Training, sample: int) -> Part:
    """Return the part of one framework."""
    trainings = [NotedTraining(plain.script, plain.modules, plain.python, config=config) for config in (EVERYTHING, {})]

    def prepare(folder: Path) -> None:
        for training in trainings:
            training.prepare(folder)

    def attempt(case: Case, folder: Path) -> str:
        training = trainings[case.number % 2]
        if training.missing:
            return "not tried: there is no interpreter with it"
        ended = None
        # One that has ended was faster than the one by which the moment was chosen.
        latest, last = training.seconds, STEPS - 1
        while ended is None or ended.returncode == 0:
            shutil.rmtree(folder / "run", ignore_errors=True)
            if case.number // 2 % 2:
                when = _after(case.uniform(0, latest))
            else:
                when = _with_steps(folder, case.randint(1, last), case.uniform(0, _SOON))
            ended = training.run(folder, SITE_HOOK, killed_when=when)
            latest, last = latest * 0.9, max(1, last - 1)
        training.check_listed(folder / "run")
        end = training.check_series(folder)
        assert ended.returncode == -signal.SIGKILL, f"ended with {ended.returncode}: {ended.stderr[-300:]}"
        return end

    told = (
        f"`tests/subjects/{plain.script}`, of {STEPS} steps, is killed by `SIGKILL` at a random moment, in every other "
        "pair of cases one within 5 ms after a random step has ended. "
        "In every other case it saves everything in every step, else what is saved by default. "
        "Whatever the folder then lists is read, and compared with what the whole run has, bit by bit. "
        "The series must have the loss of each step that has ended, but for the last one, as it is without the agent."
    )
    return Part("kills", title, told, 200, prepare, attempt, 120, None, name, sample)


WITH_PYTORCH = part("WITH_PYTORCH", "Killed trainings with PyTorch", PYTORCH, 4)
WITH_KERAS = part("WITH_KERAS", "Killed trainings with Keras", KERAS, 2)
WITH_GLUON = part("WITH_GLUON", "Killed trainings with Gluon", GLUON, 4)
WITH_XGBOOST = part("WITH_XGBOOST", "Killed trainings with XGBoost", XGBOOST, 4)
