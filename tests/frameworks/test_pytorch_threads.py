"""Two trainings at once in one process: what is saved of a step is what one of them computed in it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smd_agent import create_trial

SCRIPT = Path(__file__).with_name("torch_two_threads.py")
LINES = (
    "smd_agent: several threads train at once: only the steps of one of them are saved, and what it computes in them",
    "smd_agent: models are called in several threads at once: of calls at the same time only the first is a step",
)


def run(folder, *words):
    command = [sys.executable, *words, str(SCRIPT), str(folder / "notes")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=folder)


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("every", [1, 3])
def test_a_saved_step_is_one_of_one_thread(tmp_path, every, turn):
    plain = run(tmp_path)
    done = run(tmp_path, "-m", "smd_agent", "--every", str(every), "--out", "run")
    assert done.stdout == plain.stdout
    assert "is saving to" not in done.stderr
    assert "failed" not in done.stderr
    notes = pickle.loads((tmp_path / "notes").read_bytes())
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    whole = 0
    # In the first one nobody knows yet that there are two.
    for step in trial.steps()[1:]:
        for name in trial.tensor_names(step=step, regex=r"^gradient/.*_0\.weight$"):
            gradient = trial.tensor(name).value(step)
            weight = trial.tensor(name.removeprefix("gradient/")).value(step)
            assert any(np.array_equal(weight, noted[1]) and np.array_equal(gradient, noted[2]) for noted in notes)
            whole += 1
        for name in trial.tensor_names(step=step, collection="losses"):
            assert float(trial.tensor(name).value(step)) in [noted[3] for noted in notes]
    # Their last one may end in the middle.
    assert whole >= len(trial.steps()) - 3
    if every == 1:
        assert len(trial.steps()) >= 12
        assert [line for line in done.stderr.splitlines() if line in LINES]
