"""Keras's losses with prediction and target in each other's place, in loops with a tape and in steps of fit."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.rules import LossArgumentsSwapped
from smd_agent.rules.judging import Judging

keras = tf.keras
layers = keras.layers
pytestmark = [
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*from_logits:UserWarning"),
]
STEPS = 4
X = np.random.RandomState(0).rand(STEPS, 8, 4).astype("f4")
Y = (np.random.RandomState(1).rand(STEPS, 8, 3) > 0.5).astype("f4")
EAGER = pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])

binary = keras.losses.BinaryCrossentropy()
classes = keras.losses.CategoricalCrossentropy()
numbers = keras.losses.MeanSquaredError()


def model_of():
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Input((4,)), layers.Dense(3, "sigmoid")])


def hooked(out):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])


def found_in(hook):
    hook.close()
    judging = Judging(smd.create_trial(hook.out_dir), [LossArgumentsSwapped()])
    judging.take_new()
    return judging.verdict().findings


def train(hook, loss_of, eager):
    model = model_of()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = loss_of(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    run = step if eager else tf.function(step)
    for x, y in zip(X, Y, strict=True):
        run(tf.constant(x), tf.constant(y))


FAULTS = {
    "binary": lambda y, out: binary(out, y),
    "by name": lambda y, out: binary(y_pred=y, y_true=out),
    "classes": lambda y, out: classes(tf.nn.softmax(out), y + 0.1),
    "with a penalty": lambda y, out: binary(out, y) + 0.01 * tf.reduce_mean(out**2),
}


@EAGER
@pytest.mark.parametrize("name", FAULTS)
def test_swapped(tmp_path, name, eager):
    hook = hooked(tmp_path)
    train(hook, FAULTS[name], eager)
    (found,) = found_in(hook)
    assert found.evidence == {"swapped": 1}


HEALTHY = {
    "binary": binary,
    "numbers": lambda y, out: numbers(out, y),
    "both are trained": lambda y, out: binary(out, out**2),
    "a symmetric cross entropy": lambda y, out: binary(y, out) + 0.1 * binary(out, y),
    "one that is only printed": lambda y, out: (
        binary(tf.ones_like(out), tf.stop_gradient(out)) + tf.reduce_mean((out - y) ** 2)
    ),
    "its own answers": lambda y, out: binary(tf.cast(out > 0.5, tf.float32), out),
}


@EAGER
@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_meant(tmp_path, name, eager):
    hook = hooked(tmp_path)
    train(hook, HEALTHY[name], eager)
    assert found_in(hook) == []


class Swapping(keras.Model):
    """A model with a step of its own."""

    def __init__(self, is_right):
        super().__init__()
        self.last = layers.Dense(3, "sigmoid")
        self.is_right = is_right

    def call(self, x):
        return self.last(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            out = self(x, training=True)
            loss = binary(y, out) if self.is_right else binary(out, y)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


@EAGER
@pytest.mark.parametrize("is_right, findings", [(False, 1), (True, 0)])
def test_a_step_of_the_models_own(tmp_path, eager, is_right, findings):
    keras.utils.set_random_seed(0)
    model = Swapping(is_right)
    model.compile(keras.optimizers.SGD(0.01), run_eagerly=eager, jit_compile=False)
    hook = hooked(tmp_path)
    x, y = X.reshape(-1, 4), Y.reshape(-1, 3)
    model.fit(x, y, batch_size=8, epochs=1, verbose=0, shuffle=False, callbacks=[hook])
    assert len(found_in(hook)) == findings


def test_what_fit_compares(tmp_path):
    model = model_of()
    model.compile(keras.optimizers.SGD(0.01), "binary_crossentropy", jit_compile=False)
    hook = hooked(tmp_path)
    x, y = X.reshape(-1, 4), Y.reshape(-1, 3)
    model.fit(x, y, batch_size=8, verbose=0, validation_data=(x, y), callbacks=[hook])
    assert found_in(hook) == []
