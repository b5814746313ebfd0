"""Steps that are made again by their bundles: they are the same, and what made them go wrong is named."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("torch")

from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

SCRIPT = SUBJECTS / "pytorch/step_goes_wrong.py"

NAMED = {
    "log": r"aten\.log in what computes the loss made -inf of values from 0 to .*# HERE\); row \d of the batch$",
    "row": r"the batch that the model was given has NaN in row \d: args\[0\]$",
    "half": r"aten\.mul in Half made inf of values .*# HERE\); rows? [\d, ]+ of the batch$",
    "rate": r"aten\.mse_loss in what computes the loss made inf of values from .*e\+2\d to ",
    "dict": r"aten\.log in ReturnsDict made -inf of values from 0 to .*# HERE\); row \d of the batch$",
    "targets": r"there is inf in row \d: targets$",
    "accumulated": r"the batch that the model was given has (NaN|inf) in all 8 rows: args\[0\]$",
}


def recorded(runner, *words, name="run"):
    """Run a program that goes wrong; return the run's folder."""
    runner.by_launcher("--out", name, *words)
    return runner.folder / name


def replay(runner, run, *words):
    done = runner.by_launcher("replay", run, "--json", *words)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize("fault", NAMED)
def test_a_step_that_is_made_again_names_its_maker(runner, fault):
    run = recorded(runner, SCRIPT, "--fault", fault, "--seed", "1")
    code, found = replay(runner, run)
    assert found["differs"] == ""
    assert code == 0
    assert found["loss"] == found["loss_in_run"]
    assert re.search(NAMED[fault], found["maker"]), found["maker"]
    saved = create_trial(f"{run}-replay")
    assert saved.steps() == [0]
    assert any(name.startswith("gradient/") for name in saved.tensor_names())


def test_what_is_told_fits_on_a_screen(runner):
    run = recorded(runner, SCRIPT, "--fault", "log")
    done = runner.by_launcher("replay", run)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Loss +inf; in the run it was inf$", done.stdout, re.MULTILINE)
    assert re.search(r"^Made by +aten\.log", done.stdout, re.MULTILINE)
    assert re.search(r"^Same +as in the run, bit for bit$", done.stdout, re.MULTILINE)


def test_an_error_comes_again(runner):
    run = recorded(runner, SCRIPT, "--fault", "label")
    code, found = replay(runner, run)
    assert code == 0
    assert found["error"] == found["why"]
    assert found["error"].startswith("IndexError: Target 3 is out of bounds")


def test_a_wider_type_tells_an_overflow(runner):
    run = recorded(runner, SCRIPT, "--fault", "half")
    code, found = replay(runner, run, "--dtype", "float64")
    assert code == 0
    assert 0 < float(found["loss"]) < 1e12
    assert found["maker"] == ""


def test_a_batch_that_was_changed_is_that_of_the_programs_own_step(runner):
    run = recorded(runner, SCRIPT, "--fault", "changed")
    file = run / "bundles/step_3/bundle.json"
    # Else the program trains up to its step without being asked.
    file.write_text(json.dumps({**json.loads(file.read_text()), "seconds": 3600.0}))
    code, found = replay(runner, run)
    assert code == 1
    assert found["differs"]
    assert found["maker"] == ""
    code, found = replay(runner, run, "--from-start", "--out", "later")
    assert (code, found["differs"]) == (0, "")
    assert 3 in create_trial(runner.folder / "later").steps()


def test_a_program_that_has_changed_is_not_reproducible(runner):
    text = SCRIPT.read_text()
    script = runner.write(text)
    run = recorded(runner, script, "--fault", "log")
    runner.write(text.replace("nn.ReLU(), nn.Dropout", "nn.Tanh(), nn.Dropout"))
    code, found = replay(runner, run)
    assert code == 1
    assert "TanhBackward0" in found["differs"]


def test_another_model_is_refused(runner):
    run = recorded(runner, SCRIPT, "--fault", "log")
    code, found = replay(runner, run, "--", SCRIPT, "--fault", "log", "--width", "20")
    assert code == 2
    assert "is another model than in the run: body.0.weight has the shape (20, 8), there (16, 8)" in found["problem"]


@pytest.mark.parametrize(
    "words, reason",
    [
        (("gone",), "there is no run at gone"),
        (("clean",), "no step of it went wrong"),
        (("log", "--step", "7"), "of step 7; there is one of step 1"),
    ],
)
def test_where_there_is_no_bundle_a_line_says_so(runner, words, reason):
    recorded(runner, SCRIPT, name="clean")
    recorded(runner, SCRIPT, "--fault", "log", name="log")
    done = runner.by_launcher("replay", *words)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stdout == ""


def test_check_names_the_command(runner):
    run = recorded(runner, SCRIPT, "--fault", "log")
    done = runner.by_launcher("check", run, "--rules", "LossNotFinite")
    assert f"python -m smd_agent replay {run} makes the step again that went wrong" in done.stdout
    (run / "bundles/step_1/bundle.json").unlink()
    done = runner.by_launcher("check", run, "--rules", "LossNotFinite")
    assert "replay" not in done.stdout


@pytest.mark.parametrize("words", [["-c", "open('evil', 'w')"], ["-copen('evil', 'w')"], ["-"], []])
def test_code_that_stands_in_a_bundle_is_not_run(runner, words):
    run = recorded(runner, SCRIPT, "--fault", "log")
    file = run / "bundles/step_1/bundle.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "words": words, "folder": str(runner.folder)}))
    done = runner.by_launcher("replay", run)
    assert done.returncode == 2
    assert "name it behind --" in done.stderr
    assert not (runner.folder / "evil").exists()
