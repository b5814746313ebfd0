"""What a notebook shows of trials and tensors."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from harness.rule_runs import written

from smd_agent import create_trial
from smd_agent.report import notebook

SCRIPT = '<script>alert("1")</script>'


@pytest.fixture(autouse=True)
def no_waits_and_time_for_all(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    # A busy machine has looked at two of four steps within the second that a cell has.
    monkeypatch.setattr(notebook, "_LONGEST", 60.0)


@pytest.fixture
def trial(tmp_path):
    losses = [1.0, 0.5, float("nan"), float("nan")]
    steps = [{"loss": loss, f"a_weight{SCRIPT}": np.arange(6.0), "a_bias": np.arange(6.0)} for loss in losses]
    return written(tmp_path / "run", steps)


def picture_in(html):
    (text,) = re.findall(r'<img src="data:image/png;base64,([^"]+)"', html)
    return base64.b64decode(text)


def test_a_trial_says_its_verdict_and_draws_its_losses(trial):
    html = trial._repr_html_()
    assert re.search(r"Verdict </b>\d+ findings?: loss not finite at step 2 \(finite at 1\)", html)
    assert picture_in(html).startswith(b"\x89PNG")
    assert re.search(r'<td>loss</td><td>TRAIN</td><td class="n">1</td><td class="n">nan</td>', html)
    assert "4 saved steps: TRAIN 4" in html


def test_a_tensor_shows_its_last_steps_in_numbers(trial):
    html = trial.tensor("a_bias")._repr_html_()
    assert picture_in(html).startswith(b"\x89PNG")
    assert html.count("<td>worker_0</td>") == 4
    assert re.search(r'<td>TRAIN 3</td><td>worker_0</td><td class="n">0</td><td class="n">5</td>', html)


def test_names_are_never_markup(trial):
    for html in (trial._repr_html_(), trial.tensor(f"a_weight{SCRIPT}")._repr_html_()):
        assert "<script" not in html


def test_a_run_without_a_step_is_shown_too(tmp_path):
    html = written(tmp_path / "run", [])._repr_html_()
    assert "no step has been saved" in html
    assert "<img" not in html


def test_nothing_is_loaded_for_it_before_a_notebook_asks(tmp_path, trial):
    import subprocess
    import sys

    code = (
        f"import sys; from smd_agent import create_trial; t = create_trial({trial.path!r}); repr(t); "
        "assert not any(name.startswith(('smd_agent.rules', 'smd_agent.report')) for name in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert create_trial(trial.path)._repr_html_()
