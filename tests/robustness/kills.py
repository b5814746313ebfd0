"""Trainings that are killed at a random moment: what they list can be read, and is what the whole run has."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.part import Case, Part
from robustness.training import GLUON, KERAS, PYTORCH, XGBOOST, Training


def part(name: str, title: str, training: Training, sample: int) -> Part:
    """Return the part of one framework."""

    def attempt(case: Case, folder: Path) -> str:
        if training.missing:
            return "not tried: there is no interpreter with it"
        latest, ended = training.seconds, None
        while ended is None or ended.returncode == 0:
            # One that has ended was faster than the one by which the moment was chosen.
            shutil.rmtree(folder / "run", ignore_errors=True)
            ended = training.run(folder, SITE_HOOK, killed_after=case.uniform(0, latest))
            latest *= 0.9
        steps = training.check_listed(folder / "run")
        assert ended.returncode == -signal.SIGKILL, f"ended with {ended.returncode}: {ended.stderr[-300:]}"
        return "killed before a step was listed" if not steps else "killed with steps, all readable"

    told = (
        f"`tests/subjects/{training.script}`, which saves everything in every step, is killed by `SIGKILL` at a random "
        "moment. "
        "Whatever the folder then lists is read, and compared with what the whole run has, bit by bit."
    )
    return Part("kills", title, told, 200, training.prepare, attempt, 120, None, name, sample)


WITH_PYTORCH = part("WITH_PYTORCH", "Killed trainings with PyTorch", PYTORCH, 6)
WITH_KERAS = part("WITH_KERAS", "Killed trainings with Keras", KERAS, 4)
WITH_GLUON = part("WITH_GLUON", "Killed trainings with Gluon", GLUON, 4)
WITH_XGBOOST = part("WITH_XGBOOST", "Killed trainings with XGBoost", XGBOOST, 6)
