"""Canned estimators, and others whose optimizer is a Keras one in a graph that a session runs."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow_estimator") is None:
    pytest.skip("this TensorFlow has no estimators", allow_module_level=True)

from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "tensorflow/canned_estimators.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
COLLECTIONS = ["losses", "weights", "biases", "gradients", "optimizer_variables"]
# Weights, biases and variables of the optimizer, the number of the step among these but in old ones.
KINDS = {
    "classifier": (4, 3, 15),
    "scheduled": (2, 2, 9),
    "regressor": (3, 2, 6),
    "linear": (5, 1, 13),
    "wide_and_deep": (3, 3, 10),
    "old_classifier": (3, 2, 5),
    "old_wide_and_deep": (3, 3, 8),
    "own_with_a_tape": (2, 2, 5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimator_is_captured_and_trains_as_without(kind, runner):
    config = {
        "HookParameters": {"save_interval": 1},
        "CollectionConfigurations": [{"CollectionName": name} for name in COLLECTIONS],
    }
    plain = runner.plain(PROGRAM, kind, str(runner.folder / "plain_model"), **QUIET)
    agent = runner.folder / "agent_model"
    both = run_both(runner, PROGRAM, kind, str(agent), plain=plain, config=config, strict=True, **QUIET)
    assert_untouched(both, stderr=False)
    assert not any("failed" in line or "no tensor of" in line for line in both.said), both.said
    trial = both.trial
    # 8 rounds of train, 4 of evaluate and of predict, then 12 of train with 8 of evaluate between them.
    assert [len(trial.steps(mode=mode)) for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)] == [20, 12, 4]
    found = {name: trial.tensor_names(collection=name) for name in COLLECTIONS}
    weights, biases, of_optimizer = KINDS[kind]
    assert [len(found[name]) for name in COLLECTIONS] == [1, weights, biases, weights + biases, of_optimizer], found
    for name in (*found["gradients"], *found["optimizer_variables"]):
        assert trial.tensor(name).steps(mode=ModeKeys.TRAIN) == list(range(20))
    loss = trial.tensor(found["losses"][0])
    assert loss.steps(mode=ModeKeys.TRAIN) == list(range(20))
    evaluated = [loss.value(step, mode=ModeKeys.EVAL) for step in range(4)]
    printed = float(plain.stdout.split("loss", 1)[1].split()[0])
    np.testing.assert_allclose(np.mean(evaluated), printed, rtol=1e-5)
