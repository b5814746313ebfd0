"""Trainings with one thing changed: at which step and in which tensor they part."""

from __future__ import annotations

import json

import pytest

from smd_agent.compare.rounding_bounds import UNITS
from smd_agent.compare.runs import Outcome
from smd_agent.compare.tensor_order import Kind

pytest.importorskip("torch")

WEIGHT = "Sequential_0.weight"
FORMS = ("statistics", "median", "raw")


def first_of(differences):
    """Step, tensor and kind of what comes first."""
    return differences.step.step, differences.found[0].tensor.here, differences.found[0].tensor.kind


def verdict(lines):
    (line,) = [line for line in lines if line.startswith("Verdict")]
    return line.removeprefix("Verdict").strip()


def cause(lines):
    (line,) = [line for line in lines if line.startswith("Likely")]
    return line.removeprefix("Likely").strip()


@pytest.mark.parametrize("form", FORMS)
def test_runs_of_the_same_training_are_identical(trained, compared, diff, form):
    # Another key, so another run.
    runs = trained(form), trained(form, seed=0)
    assert runs[0] != runs[1]
    found = compared(*runs)
    assert (found.outcome, found.steps, found.first, found.problems) == (Outcome.IDENTICAL, 60, None, {})
    assert found.only_here == found.only_there == found.not_alike == []
    code, lines, err = diff(*runs)
    assert (code, err) == (0, [])
    assert verdict(lines) == f"identical: {found.tensors} tensors over 60 steps"
    assert len(lines) == 4


def test_another_seed(trained, compared, diff):
    found = compared(trained(), trained(seed=1))
    assert found.outcome is Outcome.PARTED
    assert first_of(found.parted) == (0, WEIGHT, Kind.WEIGHT)
    assert found.last_same is None
    code, lines, _ = diff(trained(), trained(seed=1))
    assert code == 1
    assert verdict(lines) == "weights differ at step 0: another seed or initialisation"


@pytest.mark.parametrize("form", FORMS)
def test_another_learning_rate_from_step_50_on(trained, compared, diff, form):
    found = compared(trained(form), trained(form, lr_at=50))
    assert found.outcome is Outcome.PARTED
    assert first_of(found.parted) == (50, "optimizer/SGD/lr", Kind.SETTING)
    assert (found.parted.found[0].apart.here, found.parted.found[0].apart.there) == (0.01, 0.001)
    assert found.last_same.step == 49
    # Weights are not apart before the next step.
    assert [(pair.step, apart > 0) for pair, apart in found.course[:2]] == [(50, False), (51, True)]
    code, lines, _ = diff(trained(form), trained(form, lr_at=50))
    assert code == 1
    assert verdict(lines) == "identical up to step 49; at step 50 optimizer/SGD/lr differs first: 0.01 | 0.001"
    assert cause(lines) == "another setting of the optimizer"


def test_a_setting_is_the_cause_of_what_steps_that_were_not_saved_have_done(trained, diff):
    code, lines, _ = diff(trained(every=20), trained(every=20, lr_at=25))
    assert code == 1
    # The weights of step 40 are apart already, and come first in it.
    assert verdict(lines) == "identical up to step 20; at step 40 optimizer/SGD/lr differs first: 0.01 | 0.001"
    code, lines, _ = diff(trained(every=20), trained(every=20, flip_at=25, bit=24))
    assert verdict(lines) == f"identical up to step 20; at step 40 weights differ first: {WEIGHT}"
    assert cause(lines) == "something in steps 21 to 39, which were not compared"


def test_the_last_bit_of_one_element(trained, compared, diff):
    found = compared(trained("raw"), trained("raw", flip_at=30, bit=0))
    assert first_of(found.first) == (30, WEIGHT, Kind.WEIGHT)
    apart = found.first.found[0].apart
    assert (apart.what, apart.differing, apart.size) == ("element (3, 5)", 1, 2048)
    assert 0 < apart.relative < UNITS["float32"]
    assert (found.outcome, found.last_same.step) == (Outcome.NOISE, 29)
    code, lines, _ = diff(trained("raw"), trained("raw", flip_at=30, bit=0))
    start = f"identical up to step 29; at step 30 weights differ first: {WEIGHT}; "
    assert verdict(lines) == f"{start}all differences stay within float noise of float32"
    assert code == 1
    assert diff(trained("raw"), trained("raw", flip_at=30, bit=0), "--tolerance", "auto")[0] == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_high_bit_of_one_element(trained, compared, diff, form):
    found = compared(trained(form), trained(form, flip_at=30, bit=24))
    assert (found.outcome, found.last_same.step) == (Outcome.PARTED, 29)
    assert first_of(found.parted) == (30, WEIGHT, Kind.WEIGHT)
    _, lines, _ = diff(trained(form), trained(form, flip_at=30, bit=24))
    assert verdict(lines) == f"identical up to step 29; at step 30 weights differ first: {WEIGHT}"
    assert cause(lines) == "another update in the step before, or weights that something else has changed"


@pytest.mark.parametrize("form", FORMS)
def test_bfloat16_against_float32(trained, compared, diff, form):
    runs = trained(form), trained(form, dtype="bfloat16")
    found = compared(*runs)
    assert found.dtypes == ("float32", "bfloat16")
    assert found.outcome is Outcome.NOISE
    # Digests of inputs of another type say nothing.
    assert first_of(found.first)[0] == 0
    code, lines, _ = diff(*runs)
    assert (code, verdict(lines)) == (1, "differences stay within float noise of bfloat16")
    assert diff(*runs, "--tolerance", "auto")[0] == diff(*runs, "--tolerance", "bfloat16")[0] == 0
    assert diff(*runs, "--tolerance", "float32")[0] == 1


@pytest.mark.parametrize("form", FORMS)
def test_another_order_of_sums_is_float_noise(trained, compared, diff, form):
    runs = trained(form), trained(form, sums_in_blocks=True)
    found = compared(*runs)
    assert (found.outcome, found.last_same) == (Outcome.NOISE, None)
    assert first_of(found.first) == (0, "0_output_0", Kind.OUTPUT)
    code, lines, _ = diff(*runs)
    assert (code, verdict(lines)) == (1, "differences stay within float noise of float32")
    assert diff(*runs, "--tolerance", "auto")[0] == 0


def test_what_happens_amid_float_noise(trained, compared, diff):
    runs = trained(), trained(sums_in_blocks=True, sample_at=30)
    found = compared(*runs)
    assert found.outcome is Outcome.PARTED
    assert first_of(found.parted) == (30, "Sequential_input_0", Kind.INPUT)
    code, lines, _ = diff(*runs, "--tolerance", "auto")
    assert code == 1
    assert verdict(lines) == "within float noise before; at step 30 inputs differ first: Sequential_input_0"
    # Without the digest it is a jump.
    found = compared(trained("raw"), trained("raw", sums_in_blocks=True, flip_at=30, bit=25))
    assert found.outcome is Outcome.PARTED
    assert first_of(found.parted) == (30, WEIGHT, Kind.WEIGHT)


def test_one_sample_of_one_batch(trained, compared, diff):
    runs = trained(), trained(sample_at=30)
    assert first_of(compared(*runs).parted)[::2] == (30, Kind.INPUT)
    _, lines, _ = diff(*runs)
    assert verdict(lines).startswith("identical up to step 29; at step 30 inputs differ first: ")
    assert cause(lines) == "other data, or another order or preparation of it"


def test_another_loss(trained, compared, diff):
    runs = trained(), trained(loss_at=20)
    assert first_of(compared(*runs).parted) == (20, "CrossEntropyLoss_output_0", Kind.LOSS)
    assert cause(diff(*runs)[1]).startswith("another loss")


def test_another_optimizer(trained, compared, diff):
    runs = trained(), trained(optimizer="Adagrad")
    found = compared(*runs)
    assert first_of(found.parted)[0] == 0
    assert found.parted.found[0].tensor.kind is Kind.SETTING
    _, lines, _ = diff(*runs)
    assert cause(lines) == "another optimizer: SGD | Adagrad"
    assert "Only in A  3 tensors: optimizer/SGD/lr, optimizer/SGD/weight_decay, optimizer/SGD/momentum" in lines


def test_whole_values_against_statistics(trained, compared):
    found = compared(trained("raw"), trained("statistics"))
    assert (found.outcome, found.problems) == (Outcome.IDENTICAL, {})
    assert {name for name in found.not_alike if "_input_" not in name} == set()
    found = compared(trained("raw"), trained("median", flip_at=30, bit=24))
    assert first_of(found.parted)[0] == 30


def test_json(trained, diff):
    code, lines, _ = diff(trained(), trained(lr_at=50), "--json")
    told = json.loads("\n".join(lines))
    assert (code, told["outcome"], told["identical_up_to"]) == (1, "parted", {"mode": "TRAIN", "step": 49})
    first = told["parted"]["tensors"][0]
    assert (first["tensor"], first["kind"], first["a"], first["b"]) == ("optimizer/SGD/lr", "setting", 0.01, 0.001)
    assert told["likely"] == "another setting of the optimizer"
    code, lines, _ = diff(trained(), trained(seed=0), "--json")
    assert (code, json.loads("\n".join(lines))["parted"]) == (0, None)
