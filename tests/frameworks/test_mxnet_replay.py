"""Trainings of Gluon that are done again up to the step that went wrong: what made it so is named."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("mxnet")

from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

SCRIPT = SUBJECTS / "mxnet/step_goes_wrong.py"
AT = 5

LOG = (
    r"log in net_shares0 made -inf of values from 0 to 0\.\d+, of which FullyConnected made NaN "
    r"\(step_goes_wrong\.py:\d+: return F\.log\(.*# HERE\); row 3 of the batch$"
)
NAMED = {
    "row": r"the batch that net was given has NaN in row 3$",
    "log": LOG,
    "loss": r"broadcast_div in what computes the loss made inf of values from .* and from 0 to 0 \(.*# HERE\)$",
    "label": r"y \(step_goes_wrong\.py:\d+\) has NaN in row 3$",
    "labels": r"what broadcast_sub in l2loss0 was given has NaN in row 3 \(step_goes_wrong\.py:\d+: .*# GIVEN\)$",
    "mask": r"softmax in net made NaN of values from -inf to .*; row 3 of the batch$",
    "function": r"broadcast_div in what computes the loss made NaN of values from 0 to 0 and from 0 to 0 \(.*# HERE\)",
    "scalar": r"div_scalar in what computes the loss made inf of .* and from 0 to 0, of which mean made NaN \(.*# HERE",
    "filled": r"softmax in what computes the loss made NaN of values from -inf to .* \(.*# HERE\); row 3 of the batch$",
    "view": r"log in what computes the loss made -inf of values from 0 to .* \(.*# HERE\); row 3 of the batch$",
}


def trained(runner, *words, script=SCRIPT, name="run"):
    """Train a program that goes wrong; return the run's folder."""
    runner.by_launcher("--out", name, script, *words)
    return runner.folder / name


def replay(runner, run, *words, script=SCRIPT, options=()):
    done = runner.by_launcher("replay", run, "--json", *options, "--", script, *words)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize("fault", NAMED)
def test_the_maker_of_a_loss_that_is_not_finite_is_named(runner, fault):
    words = ("--fault", fault, "--seed", "1")
    run = trained(runner, *words)
    code, found = replay(runner, run, *words)
    assert (code, found["step"], found["differs"], found["error"]) == (0, AT, "", "")
    assert re.match(NAMED[fault], found["maker"]), found["maker"]
    assert AT in create_trial(f"{run}-replay").steps()


@pytest.mark.parametrize("way", [("--hybridize",), ("--hybridize", "--static")], ids=["hybridized", "static"])
def test_a_hybridized_block_is_seen_inside(runner, way):
    words = ("--fault", "log", "--seed", "1", *way)
    run = trained(runner, *words)
    code, found = replay(runner, run, *words)
    assert code == 0
    assert re.match(LOG, found["maker"]), found["maker"]


def test_weights_that_were_loaded_so_are_named(runner):
    words = ("--fault", "weight", "--seed", "1")
    run = trained(runner, *words)
    code, found = replay(runner, run, *words)
    assert (code, found["step"]) == (0, 0)
    assert found["maker"] == "the weights had NaN before: net_dense1_weight"
    assert found["spoilt"] is True


@pytest.mark.parametrize("way", [(), ("--hybridize",)], ids=["plain", "hybridized"])
def test_the_operation_whose_gradient_has_spoilt_the_weights_is_named(runner, way):
    words = ("--fault", "root", "--seed", "1", *way)
    run = trained(runner, *words)
    code, found = replay(runner, run, *words)
    assert (code, found["step"], found["differs"]) == (0, AT + 1, "")
    told = (
        rf"the gradients of step {AT}, whose loss is finite: the gradient of sqrt in net made inf of values from 0 to "
    )
    assert re.match(rf"{told}.* \(.*# HERE\); row 3 of the batch$", found["maker"]), found["maker"]


def test_gradients_of_a_step_that_is_asked_for_are_looked_at(runner):
    words = ("--fault", "root", "--seed", "1")
    run = trained(runner, *words)
    code, found = replay(runner, run, *words, options=("--step", AT))
    assert (code, found["step"]) == (0, AT)
    assert "net_dense0_weight" in found["broken"]
    assert "the gradient of sqrt in net made inf" in found["maker"]


def test_an_update_that_has_spoilt_the_weights_is_named(runner):
    words = ("--fault", "rate", "--seed", "1")
    run = trained(runner, *words)
    code, found = replay(runner, run, *words)
    assert (code, found["step"], found["spoilt"]) == (0, AT + 1, False)
    told = rf"the update before step {AT + 1} made (NaN|-?inf) of finite weights and gradients: net_\w+$"
    assert re.match(told, found["maker"]), found["maker"]


def test_a_value_that_is_hidden_from_the_loss_comes_back_in_gradients(runner):
    words = ("--fault", "hidden", "--seed", "1")
    run = trained(runner, *words)
    _, found = replay(runner, run, *words)
    told = r"the gradient of sqrt in net made NaN of values from -.* \(.*# HERE\); row 3 of the batch$"
    assert re.search(told, found["maker"]), found["maker"]


def test_what_is_told_fits_on_a_screen(runner):
    words = ("--fault", "log", "--seed", "1", "--hybridize")
    run = trained(runner, *words)
    done = runner.by_launcher("replay", run, "--", SCRIPT, *words)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^Step +{AT}, which went wrong: the loss is nan$", done.stdout, re.MULTILINE)
    assert re.search(r"^Loss +nan; in the run it was nan$", done.stdout, re.MULTILINE)
    assert re.search(r"^Made by +log in net_shares0 made -inf", done.stdout, re.MULTILINE)
    told = rf"^Same +the losses of all {AT} steps before are those of the run, bit for bit$"
    assert re.search(told, done.stdout, re.MULTILINE)


def test_a_run_notes_its_program_for_the_step_that_went_wrong(runner):
    done = runner.by_launcher("--out", "run", SCRIPT, "--fault", "log", "--seed", "1")
    said = f"smd_agent: step {AT} has gone wrong (the loss is nan): python -m smd_agent replay "
    assert [line.startswith(said) for line in done.stderr.splitlines()].count(True) == 1
    done = runner.by_launcher("replay", "run", "--json")
    assert done.returncode == 0, done.stderr
    assert re.match(LOG, json.loads(done.stdout)["maker"])
    assert not (runner.folder / "run-replay/bundles").exists()
    done = runner.by_launcher("check", "run")
    assert "replay" in done.stdout
    assert "trains again up to the step that went wrong" in done.stdout


def test_no_note_is_left_where_none_is_wanted_or_all_goes_well(runner):
    done = runner.by_launcher("--out", "none", "--no-bundles", SCRIPT, "--fault", "log", "--seed", "1")
    assert "has gone wrong" not in done.stderr
    assert not (runner.folder / "none/bundles").exists()
    runner.by_launcher("--out", "well", SCRIPT, "--seed", "1")
    assert not (runner.folder / "well/bundles").exists()


def test_a_training_that_is_another_each_time_blames_nobody(runner):
    run = trained(runner, "--fault", "log")
    code, found = replay(runner, run, "--fault", "log")
    assert code == 1
    assert re.match(r"the loss of step 0 is .*, in the run ", found["differs"])
    assert found["maker"] == ""


def test_the_program_ends_before_the_update(runner):
    words = ("--fault", "log", "--seed", "1")
    update = "        trainer.step(1e-6 if trainer.learning_rate > 1 else 8)\n"
    script = runner.write(SCRIPT.read_text().replace(update, f"{update}        open('updates', 'a').write('1')\n"))
    run = trained(runner, *words, script=script)
    (runner.folder / "updates").unlink()
    assert replay(runner, run, *words, script=script)[0] == 0
    assert (runner.folder / "updates").read_text() == AT * "1"


@pytest.mark.parametrize("kind", ["turns", "alone", "contexts", "loaded", "numpy", "penalty", "own", "added", "sparse"])
def test_other_kinds_of_trainings(runner, kind):
    script = SUBJECTS / "mxnet/kinds_go_wrong.py"
    run = trained(runner, kind, script=script)
    code, found = replay(runner, run, kind, script=script)
    assert (code, found["step"], found["differs"]) == (0, 3, "")
    before = "the gradients of step 2, whose loss is finite: "
    named = {
        "turns": r"log in what computes the loss made -inf of values from 0 to 0 .*# HERE\); all 4 rows of the batch$",
        "alone": r"div_scalar in what computes the loss made inf of values from 1 to 1 and from 0 to 0 .*# HERE",
        "contexts": r"the batch that net was given on cpu\(1\) has inf in row 2$",
        "loaded": r"graph in net \(SymbolBlock\) made -inf of values .*; row 2 of the batch$",
        "numpy": r"true_divide_scalar in what computes the loss made (inf|-inf) of values .*# HERE",
        "penalty": rf"{before}the gradient of sqrt in what computes the loss made -?inf of values from 0 to 0 \(.*HERE",
        "own": rf"{before}the gradient of Own in what computes the loss made NaN of values .*# HERE\); all 4 rows",
        "added": rf"{before}the gradient of sqrt in what computes the loss made -?inf of values from 0 to 0 \(.*HERE",
        "sparse": rf"{before}the gradient of sqrt in what computes the loss made -?inf of values from 0 to 0 \(.*HERE",
    }
    assert re.match(named[kind], found["maker"]), found["maker"]


def test_steps_that_are_watched_compute_the_same(runner):
    script = SUBJECTS / "mxnet/kinds_go_wrong.py"
    expected = runner.plain(script, "convolutions").stdout
    order = json.dumps({"bundle": "", "result": str(runner.folder / "result.json"), "at": 1, "until": 9})
    done = runner.by_launcher("--out", "run", "--no-bundles", script, "convolutions", SMD_AGENT_REPLAY=order)
    assert json.loads((runner.folder / "result.json").read_text())["step"] == 5
    assert done.stdout == expected
    assert len(expected.splitlines()) == 6


def test_nothing_is_watched_in_any_other_training(runner):
    script = runner.write(
        SCRIPT.read_text()
        + "\n    import sys, mxnet.ndarray.register as register\n"
        + "    print('smd_agent.mxnet.repeated_steps' in sys.modules, register._imperative_invoke.__module__)\n"
    )
    done = runner.by_launcher(script, "--seed", "1")
    assert done.stdout.splitlines()[-1] == "False mxnet._ctypes.ndarray"
