"""Trainings whose batches have another number of rows in each step, every step of which is saved whole."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

keras = tf.keras
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

ROWS = (61, 64, 1, 30, 50, 84, 21, 83)
COLLECTIONS = ["usage", "input_digests", "updates", "weights", "losses", "inputs"]


def make():
    layers = keras.layers
    return keras.Sequential([layers.Input((28, 28, 1)), layers.Flatten(), layers.Dense(10, activation="softmax")])


def batches():
    rng = np.random.default_rng(0)
    for rows in ROWS:
        yield rng.random((rows, 28, 28, 1), np.float32), rng.integers(0, 10, rows).astype(np.int32)


def assert_complete(out, capsys, facts):
    assert "failed" not in capsys.readouterr().err
    trial = smd.create_trial(out)
    steps = [*range(len(ROWS))]
    assert trial.steps() == steps
    # A guess takes labels of some steps.
    names = [
        name for name in trial.tensor_names() if name.startswith(facts) and not name.endswith(("/guess", "/least"))
    ]
    assert {name.partition("/")[0] for name in names} == {fact.partition("/")[0] for fact in facts}
    assert {name: trial.tensor(name).steps() for name in names if trial.tensor(name).steps() != steps} == {}


@pytest.mark.parametrize("eagerly", [False, True])
def test_fit(out, eagerly, capsys):
    model = make()
    model.compile("sgd", "sparse_categorical_crossentropy", run_eagerly=eagerly)
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=COLLECTIONS)
    shapes = (tf.TensorSpec((None, 28, 28, 1)), tf.TensorSpec((None,), tf.int32))
    data = tf.data.Dataset.from_generator(batches, output_signature=shapes)
    model.fit(data, steps_per_epoch=len(ROWS), shuffle=False, verbose=0, callbacks=[hook])
    hook.close()
    assert_complete(out, capsys, ("usage/input/", "usage/loss/", "input_digest/", "update/"))


def test_tape(out, capsys):
    model, optimizer = make(), keras.optimizers.SGD(0.01)
    loss_of = keras.losses.SparseCategoricalCrossentropy()
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=COLLECTIONS)
    for x, y in batches():
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    hook.close()
    assert_complete(out, capsys, ("update/",))
