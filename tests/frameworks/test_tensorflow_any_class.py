"""Classes of a TensorFlow program's that say themselves what they are equal to: they are known by identity alone."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

import tensorflow as tf
from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS

import smd_agent.tensorflow as smd

PROGRAM = SUBJECTS / "tensorflow/own_identity.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def both(module_runner):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    return run_both(module_runner("own_identity"), PROGRAM, config=config, strict=True, **QUIET)


def test_the_training_is_the_same_and_graphs_are_hashed_and_compared_as_often(both):
    assert_untouched(both, stderr=False)
    assert not any("failed" in line for line in both.said), both.said


def test_every_step_is_saved(both):
    trial = both.trial
    for collection in ("losses", "gradients", "weights", "optimizer_variables"):
        names = trial.tensor_names(collection=collection)
        assert names, collection
        assert all(trial.tensor(name).steps() == [*range(6)] for name in names), collection


def test_a_wrapped_optimizer_is_not_compared_with_what_a_script_tells_of(out):
    class Refusing(tf.keras.optimizers.SGD):
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise TypeError("it is not compared")

    hook = smd.KerasHook(out)
    optimizer = hook.wrap_optimizer(Refusing(0.1))
    for _ in range(2):
        hook.set_optimizer_variables(tf.Variable(1.0))
    assert [one() is optimizer for one in hook.optimizers] == [True, False]
