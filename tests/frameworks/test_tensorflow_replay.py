"""Trainings of Keras and of tapes that are done again up to the step that went wrong, whose maker is named."""

from __future__ import annotations

import json
import re

import pytest

# With Keras 2 a step within an execution of several is told by the execution.
pytest.importorskip("tensorflow", minversion="2.16")

from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

FIT, TAPE = SUBJECTS / "keras/step_goes_wrong.py", SUBJECTS / "tensorflow/step_goes_wrong.py"

OF_FIT = {
    "row": r"^the batch that the step was given has NaN in row 2$",
    "log": r"^Log in logarithm made -inf of values from 0 to .*, of which MatMul made NaN .*# HERE\); row 2 of the",
    # The masks of the other rows are none of it.
    "mask": r"^Log in what computes the loss made -inf of values from 0 to .*# LOSS\); row 2 of the batch$",
    "masked": r"^Softmax in attention made NaN of values from -inf to .*# HERE\); row 2 of the batch$",
    "own": r"^RealDiv in what computes the loss made inf of values .* and from 0 to .*# HERE\); row 2 of the batch$",
}
OF_TAPES = {
    "share": r"^RealDiv in what computes the loss made NaN of values from 0 to .*# HERE\); row 2 of the batch$",
    "row": r"^the batch that the step was given has NaN in row 2$",
    "root": r"^the gradients of step 5, whose loss is finite: SqrtGrad in the gradient of Sqrt .* made inf .*# HERE\)",
}


def recorded(runner, *words, name="run"):
    """Run a program that goes wrong; return the run's folder."""
    runner.by_launcher("--out", name, *words)
    return runner.folder / name


def replay(runner, run, *words):
    done = runner.by_launcher("replay", run, "--json", *words)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def again(runner, *words):
    """Run a program that goes wrong, and train it again; exit code, and what is told."""
    return replay(runner, recorded(runner, *words))


@pytest.mark.parametrize("fault", OF_FIT)
def test_a_fit_that_is_done_again_names_the_maker(runner, fault):
    run = recorded(runner, FIT, "--fault", fault)
    # The loss of the program's own step is known in saved steps only, so that there is no note of it.
    code, found = replay(runner, run, *(("--", FIT, "--fault", fault) if fault == "own" else ()))
    assert (code, found["differs"], found["step"]) == (0, "", 5)
    assert found["loss"] == found["loss_in_run"]
    assert re.search(OF_FIT[fault], found["maker"]), found["maker"]
    saved = create_trial(runner.folder / "run-replay")
    assert any(name.startswith("gradients/") for name in saved.tensor_names(step=5))


@pytest.mark.parametrize("jit", ["yes", pytest.param("no", marks=pytest.mark.cold)])
def test_a_fit_runs_compiled_up_to_the_step(runner, jit):
    code, found = again(runner, FIT, "--fault", "log", "--jit", jit, "--validate", "--epochs", "2")
    assert (code, found["differs"], found["compared"]) == (0, "", 5)
    assert re.search(OF_FIT["log"], found["maker"]), found["maker"]


@pytest.mark.cold
def test_a_step_amid_an_execution_is_found(runner):
    code, found = again(runner, FIT, "--fault", "log", "--execution", "4")
    assert (code, found["step"]) == (0, 5)
    assert re.search(OF_FIT["log"], found["maker"]), found["maker"]


@pytest.mark.cold
def test_a_step_of_an_execution_that_was_not_saved_is_found_within_it(runner):
    words = ("--every", "1000", FIT, "--fault", "row", "--bad", "2042", "--rows", "2400", "--execution", "10")
    run = recorded(runner, *words)
    note = json.loads(next(run.glob("bundles/*/bundle.json")).read_text())
    code, found = replay(runner, run)
    assert (code, note["step"], found["step"], found["differs"]) == (0, 259, 255, "")
    assert re.search(OF_FIT["row"], found["maker"]), found["maker"]


@pytest.mark.cold
def test_gradients_that_have_spoilt_the_weights_are_looked_for_a_step_earlier(runner):
    code, found = again(runner, FIT, "--fault", "root")
    assert (code, found["step"], found["compared"]) == (0, 6, 5)
    assert re.search(OF_TAPES["root"], found["maker"]), found["maker"]
    assert " in root made inf" in found["maker"]


@pytest.mark.parametrize("fault", OF_TAPES)
def test_a_loop_with_a_tape_names_the_maker(runner, fault):
    code, found = again(runner, TAPE, "--fault", fault)
    assert (code, found["differs"], found["compared"]) == (0, "", 5)
    assert re.search(OF_TAPES[fault], found["maker"]), found["maker"]


@pytest.mark.cold
@pytest.mark.parametrize("way", ["eager", "xla"])
def test_a_loop_is_watched_whatever_compiles_it(runner, way):
    code, found = again(runner, TAPE, "--fault", "share", "--way", way)
    assert (code, found["step"]) == (0, 5)
    assert re.search(OF_TAPES["share"], found["maker"]), found["maker"]


@pytest.mark.cold
def test_the_first_step_is_watched(runner):
    code, found = again(runner, TAPE, "--fault", "share", "--bad", "2")
    assert (code, found["step"], found["compared"]) == (0, 0, 0)
    assert re.search(OF_TAPES["share"], found["maker"]), found["maker"]


def test_what_is_told_fits_on_a_screen(runner):
    run = recorded(runner, FIT, "--fault", "log")
    done = runner.by_launcher("replay", run)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Step +5, which went wrong: the loss is nan$", done.stdout, re.MULTILINE)
    assert re.search(r"^Loss +nan; in the run it was nan$", done.stdout, re.MULTILINE)
    assert re.search(r"^Made by +Log in logarithm", done.stdout, re.MULTILINE)
    same = r"^Same +the losses of all 5 steps before are those of the run, bit for bit$"
    assert re.search(same, done.stdout, re.MULTILINE)


def test_of_a_program_that_draws_other_numbers_nobody_is_blamed(runner):
    run = recorded(runner, FIT, "--fault", "log", "--unseeded")
    code, found = replay(runner, run)
    assert code == 1
    assert re.search(r"^the loss of step 0 is [\d.]+, in the run [\d.]+$", found["differs"])
    assert found["maker"] == ""
    done = runner.by_launcher("replay", run)
    assert re.search(r"^Not same +not reproducible: the loss of step 0 is", done.stdout, re.MULTILINE)
    assert "Made by" not in done.stdout


@pytest.mark.cold
def test_a_step_that_is_asked_for_is_looked_at(runner):
    run = recorded(runner, FIT)
    code, found = replay(runner, run, "--step", "3", "--", FIT)
    assert (code, found["step"], found["maker"]) == (0, 3, "")
    code, found = replay(runner, run, "--step", "300", "--", FIT)
    assert code == 2
    assert not found["reached"]


@pytest.mark.parametrize(
    "words, reason",
    [
        ((), "has no training step whose loss is not finite"),
        (("--step", "3", "--dtype", "float64"), "--dtype is for steps of PyTorch"),
        (("--step", "3"), "the run names no program in a file: name it behind --"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(runner, words, reason):
    run = recorded(runner, TAPE)
    done = runner.by_launcher("replay", run, *words)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stdout == ""


def test_check_and_the_run_name_the_command(runner):
    done = runner.by_launcher("--out", "run", TAPE, "--fault", "row")
    run = runner.folder / "run"
    line = f"step 5 has gone wrong (the loss is nan): python -m smd_agent replay {run} trains again up to it"
    assert done.stderr.count(line) == 1
    done = runner.by_launcher("check", run, "--rules", "LossNotFinite")
    assert f"python -m smd_agent replay {run} trains again up to the step that went wrong, and names" in done.stdout


@pytest.mark.parametrize("words", [["-c", "open('evil', 'w')"], ["-"], []])
def test_code_that_stands_in_a_run_is_not_run(runner, words):
    run = recorded(runner, TAPE, "--fault", "row")
    file = run / "bundles/step_5/bundle.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "words": words, "folder": str(runner.folder)}))
    done = runner.by_launcher("replay", run)
    assert done.returncode == 2
    assert "name it behind --" in done.stderr
    assert not (runner.folder / "evil").exists()


@pytest.mark.cold
def test_nothing_is_noted_where_it_is_not_wanted(runner):
    done = runner.by_launcher("--out", "run", "--no-bundles", TAPE, "--fault", "row")
    assert "has gone wrong" not in done.stderr
    code, found = replay(runner, runner.folder / "run", "--", TAPE, "--fault", "row")
    assert (code, found["step"]) == (0, 5)
