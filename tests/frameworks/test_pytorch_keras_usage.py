"""The collection ``usage`` of Keras on PyTorch: what losses are given, against NumPy, and modes."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import numpy as np
import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("keras") is None or int(version("keras").split(".")[0]) < 3:
    pytest.skip("there is no Keras 3", allow_module_level=True)

from harness.compare import assert_untouched, run_both
from harness.rule_runs import found as found_by_rule
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import ActivationMissing, DoubleActivation, TargetOutOfReach, TrainingInEvaluationMode

WARM = ("torch", "keras")
PROGRAM = SUBJECTS / "keras/usage_on_torch.py"
TORCH = {"KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
CONFIG = {"HookParameters": {"save_interval": 1, "save_all": True}}
SPARSE = "SparseCategoricalCrossentropy"
STEPS = 3


class Trained:
    """What was saved of trainings, of which each is known by its name."""

    def __init__(self, runner, *names):
        self.names = names
        both = run_both(runner, PROGRAM, *names, config=CONFIG, strict=True, **TORCH)
        assert_untouched(both)
        assert "failed" not in both.agent.stderr
        self.trial = both.trial

    def value(self, name, training, step=0, mode=TRAIN):
        first = self.names.index(training) * (STEPS if mode is TRAIN else STEPS - 1)
        return self.trial.tensor(name).value(first + step, mode=mode)

    def facts(self, training, loss, step=0, mode=TRAIN):
        """The facts of a loss in a step of a training, by name."""
        first = self.names.index(training) * (STEPS if mode is TRAIN else STEPS - 1)
        found = {}
        for name in self.trial.tensor_names(regex=f"^usage/loss/{loss}_0/"):
            if first + step in self.trial.tensor(name).steps(mode=mode):
                found[name.rpartition("/")[2]] = float(self.value(name, training, step, mode))
        return found


@pytest.fixture(scope="module")
def trained(module_runner):
    names = ("logits", "probabilities", "frozen", "image", "named", "ignored", "sum", "masked", "half")
    return Trained(module_runner("classes"), *names)


@pytest.fixture(scope="module")
def of_numbers(module_runner):
    return Trained(module_runner("numbers"), "binary", "mse", "Huber", "linear", "own")


def rows(values):
    ends = {"input_min": values.min(), "input_max": values.max()}
    return {**ends, "row_sum_error": abs(values.sum(-1) - 1).max(), "sample_sum_error": abs(values.sum(0) - 1).max()}


OF_LABELS = {"classes": 3, "labels": 4, "label_min": 0, "label_max": 2, "ignored": 0, "top_label": 2, "top_share": 0.5}


@pytest.mark.parametrize("step", range(STEPS))
def test_logits_that_a_loss_takes_for_probabilities(trained, step):
    values = trained.value("predictions", "logits", step)
    expected = {**OF_LABELS, **rows(values), "expects_logits": 0, "activated": 0, "linear": 1, "swapped": 0}
    expected["loss"] = float(trained.value("batch_loss", "logits", step))
    assert trained.facts("logits", SPARSE, step) == pytest.approx(expected, rel=1e-5)


def test_evaluations_have_no_graph(trained):
    for training, expects in (("logits", 0), ("probabilities", 1)):
        values = trained.value("predictions", training, 1, EVAL)
        expected = {**OF_LABELS, **rows(values), "expects_logits": expects}
        assert trained.facts(training, SPARSE, 1, EVAL) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_probabilities_that_a_loss_takes_for_logits(trained):
    facts = trained.facts("probabilities", SPARSE)
    # On PyTorch Keras computes with what it is given.
    expected = {"expects_logits": 1, "activated": 1, "softmax_over": 3, "linear": 0}
    assert expected.items() <= facts.items()
    assert "undone" not in facts


@pytest.mark.parametrize(
    "training, loss, expected",
    [
        ("image", SPARSE, {"activated": 0, "linear": 1, "classes": 3}),
        ("frozen", SPARSE, {"activated": 0, "classes": 3}),
        ("named", "categorical_crossentropy", {**OF_LABELS, "activated": 1, "linear": 0, "expects_logits": 0}),
        ("ignored", SPARSE, {"labels": 2, "label_max": 1, "ignored": 0.5}),
        ("half", SPARSE, {**OF_LABELS, "activated": 1, "softmax_over": 3}),
    ],
)
def test_other_trainings(trained, training, loss, expected):
    facts = trained.facts(training, loss)
    assert expected.items() <= facts.items()
    assert {"loss", "input_min"} <= facts.keys()
    # What is frozen has no gradient, as data have none.
    assert ("linear" in facts) is (training != "frozen")


@pytest.mark.parametrize("training", ["sum", "masked"])
def test_a_loss_that_is_no_mean_over_labels_has_none_by_label(trained, training):
    facts = trained.facts(training, SPARSE)
    assert "labels" in facts
    assert "loss" not in facts


def test_a_loss_of_yes_and_no(of_numbers):
    values = of_numbers.value("predictions", "binary")
    expected = {"expects_logits": 1, "activated": 1, "linear": 0, "swapped": 0}
    expected |= {"input_min": values.min(), "input_max": values.max()}
    expected["loss"] = float(of_numbers.value("batch_loss", "binary"))
    assert of_numbers.facts("binary", "BinaryCrossentropy") == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("training, loss, ends", [("mse", "mean_squared_error", (0, 1)), ("Huber", "Huber", (0, 6))])
def test_targets_behind_an_activation(of_numbers, training, loss, ends):
    part = of_numbers.value("labels", training, 1)
    expected = {"reach_min": ends[0], "reach_max": ends[1], "target_min": part.min(), "target_max": part.max()}
    expected["out_of_reach"] = ((part < ends[0]) | (part > ends[1])).mean()
    assert of_numbers.facts(training, loss, 1) == pytest.approx(expected, rel=1e-6)
    assert of_numbers.facts(training, loss, 1, EVAL) == {}


def test_there_are_none_where_nothing_bounds_the_prediction_nor_of_own_losses(of_numbers):
    assert of_numbers.facts("linear", "mean_squared_error") == {}
    losses = {name.split("/")[2] for name in of_numbers.trial.tensor_names(regex="^usage/loss/")}
    assert losses == {"BinaryCrossentropy_0", "mean_squared_error_0", "Huber_0"}


def test_what_a_guess_would_cost(module_runner):
    trial = Trained(module_runner("guess"), "guess").trial
    guess = trial.tensor(f"usage/loss/{SPARSE}_0/guess")
    # Of each class 20 labels are needed, and the data are sorted in fours.
    assert guess.steps(mode=TRAIN) == [*range(14, 24)]
    shares = np.array([0.25, 0.25, 0.5])
    assert guess.value(20, mode=TRAIN) == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-5)
    assert trial.tensor(f"usage/loss/{SPARSE}_0/least").value(20, mode=TRAIN) == 0


@pytest.mark.parametrize(
    "training, rule, loss",
    [("probabilities", DoubleActivation, SPARSE), ("logits", ActivationMissing, SPARSE)],
)
def test_rules_find_a_faulty_program(runner, training, rule, loss):
    trial = Trained(runner, training).trial
    assert {*found_by_rule(trial, rule())} == {f"usage/loss/{loss}_0/input_min"}


def test_a_rule_finds_targets_out_of_reach(runner):
    found = found_by_rule(Trained(runner, "mse").trial, TargetOutOfReach())
    assert found
    assert all(name.startswith("usage/loss/mean_squared_error_0/") for name in found)


def test_modes_in_which_models_and_layers_are_called(module_runner):
    trained = Trained(module_runner("modes"), "modes", "untold")

    def modes(title, training, mode):
        names = trained.trial.tensor_names(regex=f"^usage/model/{title}/")
        return {name.rpartition("/")[2]: round(float(trained.value(name, training, 1, mode)), 6) for name in names}

    assert modes("modes", "modes", TRAIN) == {"training": 1, "dropout": 1, "dropped": 0.2, "batch_norm": 0.5}
    assert modes("modes", "modes", EVAL) == {"training": 0, "dropout": 0, "dropped": 0.2, "batch_norm": 0}
    assert modes("untold", "untold", TRAIN) == {"training": 0, "dropout": 0, "dropped": 0.3}
    found = found_by_rule(trained.trial, TrainingInEvaluationMode())
    assert {*found} == {"usage/model/untold/training"}
