"""Two trainings at once in one process: what is saved of a step is what one of them computed in it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from harness.compare import Both, assert_untouched
from harness.runner import SUBJECTS

SCRIPT = SUBJECTS / "pytorch/two_threads.py"
LINES = (
    "smd_agent: several threads train at once: only the steps of one of them are saved, and what it computes in them",
    "smd_agent: models are called in several threads at once: of calls at the same time only the first is a step",
)


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("every", [1, 3])
def test_a_saved_step_is_one_of_one_thread(runner, tmp_path, every, turn):
    notes = str(tmp_path / "notes")
    plain = runner.plain(SCRIPT, notes)
    done = runner.by_launcher("--raw", "--every", str(every), "--out", "run", SCRIPT, notes)
    both = Both(plain, done, tmp_path / "run")
    assert_untouched(both)
    assert "is saving to" not in done.stderr
    assert "failed" not in done.stderr
    notes = pickle.loads((tmp_path / "notes").read_bytes())
    trial = both.trial
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
        assert len(trial.steps()) >= 6
        assert [line for line in done.stderr.splitlines() if line in LINES]
