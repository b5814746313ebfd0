"""A loop with tapes that breaks after its last saved step: weights that are not finite are in the run's last step."""

from __future__ import annotations

import gc

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

X = np.random.RandomState(0).rand(20, 6, 4).astype("f4")


def train(hook, wrap, broken_from=None):
    """Train 20 steps; the variables are gone when this returns."""
    w, frozen = tf.Variable(np.ones((4, 1), "f4"), name="w"), tf.Variable(np.ones(3, "f4"), name="frozen")
    large = tf.Variable(np.ones((4, 5000), "f4"), name="large")

    @wrap
    def step(x):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((x @ w) ** 2) + tf.reduce_mean(x @ large)
        for variable, gradient in zip([w, large], tape.gradient(loss, [w, large]), strict=True):
            variable.assign_sub(0.01 * gradient)

    for number, x in enumerate(X):
        step(tf.constant(np.full_like(x, np.nan) if number == broken_from else x))
    assert np.isfinite(frozen.numpy()).all()


@pytest.mark.parametrize("wrap", [lambda step: step, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("broken_from", [None, 14])
def test_weights_at_the_end(out, wrap, broken_from):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=10), include_collections=["weights"])
    train(hook, wrap, broken_from)
    gc.collect()
    hook.close()
    trial = smd.create_trial(out)
    assert trial.steps() == ([0, 10] if broken_from is None else [0, 10, 19])
    if broken_from is not None:
        assert trial.tensor_names(step=19) == ["weights/w:0"]
        assert np.isnan(trial.tensor("weights/w:0").value(19)).all()


def test_who_saves_no_weights_has_none_at_the_end(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=10), include_collections=["gradients"])
    train(hook, lambda step: step, 14)
    hook.close()
    assert smd.create_trial(out).steps() == [0, 10]
