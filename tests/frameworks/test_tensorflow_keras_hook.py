"""Scripts that make a KerasHook themselves."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("there is no tensorflow", allow_module_level=True)

from harness.compare import noted
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

EDITED = SUBJECTS / "keras/edited.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def source_tree():
    """Where the package is found by a script of which the agent knows nothing."""
    return {"PYTHONPATH": str(Path(sys.modules["smd_agent"].__file__).parent.parent)}


def test_a_hook_of_the_scripts_own(runner, tmp_path):
    result = runner.plain(EDITED, tmp_path / "run", tmp_path / "own.npz", **QUIET, **source_tree())
    assert result.returncode == 0, result.stderr
    assert "failed" not in result.stderr
    trial = create_trial(str(tmp_path / "run"))
    # Two epochs of 3 steps; one step of validation after each, and one more.
    assert trial.steps(mode=TRAIN) == list(range(6))
    assert trial.steps(mode=EVAL) == [0, 1, 2]
    expected = {
        "mine": {"second/inputs", "second/outputs"},
        "sm_metrics": {"mae", "val_mae"},
        "losses": {"loss", "batch_loss", "val_loss"},
    }
    for collection, names in expected.items():
        assert set(trial.tensor_names(collection=collection)) == names
    assert {name.split("/")[0] for name in trial.tensor_names(collection="chosen")} == {"first"}
    assert len(trial.tensor_names(collection="chosen")) == 2
    assert len(trial.tensor_names(collection="kernels")) == 2
    assert len(trial.tensor_names(collection="gradients")) == 4
    assert trial.tensor("scalar/wall").value(1, mode=EVAL) == [3.5]
    own = noted(tmp_path / "own.npz")["loss"]
    assert trial.tensor("loss").value(2, mode=EVAL) == np.float32(own)
    check_numbers(trial)


def check_numbers(trial):
    """What was saved fits together: by NumPy, for the mean squared error and SGD with momentum."""

    def value(name, step):
        return trial.tensor(name).value(step, mode=TRAIN)

    rows = np.random.default_rng(2)
    rows.normal(size=(24, 4))
    labels = rows.normal(size=(24, 2)).astype("float32")[16:24]
    assert value("batch_loss", 2) == pytest.approx(np.mean((value("second/outputs", 2) - labels) ** 2), rel=1e-5)
    (kernel,) = trial.tensor_names(regex="weights/.*first/kernel:0$")
    (gradient,) = trial.tensor_names(regex="gradients/.*first/kernelGrad$")
    (velocity,) = [
        name
        for name in trial.tensor_names(collection="optimizer_variables")
        if ("first" in name and "kernel" in name and "momentum" in name) or "SGD/m/first/kernel" in name
    ]
    assert not value(velocity, 0).any()
    for step in range(5):
        moved = 0.9 * value(velocity, step) - 0.5 * value(gradient, step)
        np.testing.assert_allclose(value(velocity, step + 1), moved, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(value(kernel, step + 1), value(kernel, step) + moved, rtol=1e-5, atol=1e-7)
    tensor, whole = trial.tensor(kernel), value(kernel, 2)
    assert tensor.reduction_value(2, "min", mode=TRAIN) == whole.min()
    assert tensor.reduction_value(2, "mean", mode=TRAIN) == pytest.approx(whole.mean(), rel=1e-5)
    assert tensor.reduction_value(2, "l2", mode=TRAIN, abs=True) == pytest.approx(np.linalg.norm(whole), rel=1e-5)
