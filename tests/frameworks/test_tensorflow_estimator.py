"""Estimators: train, evaluate, predict, train_and_evaluate, each in its mode; found without an edit, or with a hook."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow_estimator") is None:
    pytest.skip("this TensorFlow has no estimators", allow_module_level=True)

from harness.compare import Both, assert_untouched, noted, run_both
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "tensorflow/estimator_programs.py"
COLLECTIONS = ["weights", "biases", "gradients", "optimizer_variables"]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
KERNELS = ["first/kernel:0", "second/kernel:0"]


@pytest.fixture(scope="module")
def plain(shared_runner):
    folder = shared_runner.folder
    done = shared_runner.plain(PROGRAM, str(folder / "plain.npz"), str(folder / "model"), **QUIET)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_and_its_values_are_right(every, plain, runner):
    file = runner.folder / "seen.npz"
    config = {
        "HookParameters": {"save_interval": every},
        "CollectionConfigurations": [{"CollectionName": name} for name in COLLECTIONS],
    }
    words = [str(file), str(runner.folder / "model")]
    both = run_both(runner, PROGRAM, *words, plain=plain, config=config, **QUIET)
    assert_untouched(both, stderr=False)
    trial, seen = both.trial, noted(file)
    # 8 rounds of train, 4 of evaluate and of predict, then 12 of train with 8 of evaluate between them.
    counts = {ModeKeys.TRAIN: 20, ModeKeys.EVAL: 12, ModeKeys.PREDICT: 4}
    for mode, count in counts.items():
        assert trial.steps(mode=mode) == list(range(0, count, every))
        for name in KERNELS:
            assert trial.tensor(name).steps(mode=mode) == list(range(0, count, every))
    (loss,) = trial.tensor_names(collection="losses")
    for mode, name in ((ModeKeys.TRAIN, "train"), (ModeKeys.EVAL, "eval")):
        assert trial.tensor(loss).steps(mode=mode) == list(range(0, len(seen[name]), every))
        for step in trial.tensor(loss).steps(mode=mode):
            assert trial.tensor(loss).value(step, mode=mode) == seen[name][step]
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 4
    assert all(trial.tensor(name).steps(mode=ModeKeys.TRAIN) == list(range(0, 20, every)) for name in gradients)
    assert not any(trial.tensor(name).steps(mode=ModeKeys.EVAL) for name in gradients)
    if every == 1:
        check_adam(trial, gradients)
        check_predictions(trial, seen["predictions"])


def check_adam(trial, gradients):
    """The moments that Adam keeps follow from the gradients; the weights of a step from those of the last."""
    for variable in ("first/kernel", "second/kernel"):
        product = {"first/kernel": "matmul_grad", "second/kernel": "matmul_1_grad"}[variable]
        (gradient,) = [name for name in gradients if name.split("/")[1] == product]
        m, v = (trial.tensor(f"{variable}/Adam{more}:0") for more in ("", "_1"))
        weight = trial.tensor(f"{variable}:0")
        for step in range(7):
            found = trial.tensor(gradient).value(step, mode=ModeKeys.TRAIN).astype("d")
            before, after = (m.value(at, mode=ModeKeys.TRAIN) for at in (step, step + 1))
            np.testing.assert_allclose(after, 0.9 * before + 0.1 * found, rtol=1e-4, atol=1e-7)
            rate = 0.05 * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
            moved = rate * after / (np.sqrt(v.value(step + 1, mode=ModeKeys.TRAIN)) + 1e-8)
            old, new = (weight.value(at, mode=ModeKeys.TRAIN) for at in (step, step + 1))
            np.testing.assert_allclose(new, old - moved, rtol=1e-4, atol=1e-6)


def check_predictions(trial, predictions):
    """What was predicted follows from the weights that were saved then."""
    rows = np.random.default_rng(0).normal(size=(64, 4)).astype("f")
    parts = [[f"{name}/{part}:0" for part in ("kernel", "bias")] for name in ("first", "second")]
    for step in range(4):
        value = rows[16 * step : 16 * step + 16]
        for number, (kernel, bias) in enumerate(parts):
            kernel, bias = (trial.tensor(name).value(step, mode=ModeKeys.PREDICT) for name in (kernel, bias))
            value = value @ kernel + bias
            value = value if number else np.maximum(value, 0)
        np.testing.assert_allclose(value, predictions[16 * step : 16 * step + 16], rtol=1e-4, atol=1e-5)


def test_a_hook_of_the_scripts_own_knows_the_modes(plain, runner):
    words = [str(runner.folder / name) for name in ("seen.npz", "model", "run")]
    both = Both(plain, runner.plain(PROGRAM, *words, **QUIET), runner.folder / "run")
    assert_untouched(both, stderr=False)
    trial, seen = both.trial, noted(words[0])
    (loss,) = trial.tensor_names(collection="losses")
    for mode, name in ((ModeKeys.TRAIN, "train"), (ModeKeys.EVAL, "eval")):
        values = [trial.tensor(loss).value(step, mode=mode) for step in trial.tensor(loss).steps(mode=mode)]
        assert values == seen[name].tolist()
    assert trial.tensor(KERNELS[0]).steps(mode=ModeKeys.PREDICT) == [0, 1, 2, 3]
