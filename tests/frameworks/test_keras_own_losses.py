"""Losses that a model of fit works out by itself: columns that meet rows in them, and pairs that are meant."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.rules import LossOfOtherShape
from smd_agent.rules.judging import Judging

keras = tf.keras
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

SIZE, STEPS = 6, 4
X = np.random.RandomState(0).rand(SIZE * STEPS, 4).astype("f4")
Y = np.random.RandomState(1).rand(SIZE * STEPS).astype("f4")
KINDS = {"compiled": {"jit_compile": False}, "xla": {"jit_compile": True}}


class Trained(keras.Model):
    """A model with a training step and a loss of its own."""

    def __init__(self, loss_of, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_of = loss_of

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(y, self(x, training=True))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


class Computing(keras.Model):
    """A model with a loss of its own, in the training step of Keras's."""

    def __init__(self, loss_of, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_of = loss_of

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
        return self.loss_of(y, y_pred)


class Squares(keras.losses.Loss):
    """A loss of the program's own, called as Keras's are."""

    def call(self, y_true, y_pred):
        return tf.square(tf.reshape(y_true, [-1]) - y_pred)


def tensors(front=()):
    keras.utils.set_random_seed(0)
    x = layers.Input((4,))
    y = x
    for layer in (*(front and front()), layers.Dense(1)):
        y = layer(y)
    return x, y


def data(size=SIZE, **options):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(size, **options)


def fit(model, loss=None, data=data, **options):
    model.compile(keras.optimizers.SGD(0.01), loss, **options)
    model.fit(data(), epochs=1, shuffle=False, verbose=0)
    return model.get_weights()


def hooked(out, collections=("usage",)):
    config = smd.SaveConfig(save_interval=1)
    return smd.KerasHook(out, save_config=config, include_collections=list(collections))


def run_of(hook):
    """How often elements come in the first loss, by step, and what the rule finds."""
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    names = trial.tensor_names(regex="^usage/loss/own_loss_0/")
    found = [[trial.tensor(name).value(step).item() for step in trial.tensor(name).steps()] for name in names]
    judging = Judging(trial, [LossOfOtherShape()])
    judging.take_new()
    return found[0] if found else None, judging.verdict().findings


BROADCAST = {
    "squares": lambda y, p: tf.reduce_mean(tf.square(y - p)),
    "absolute": lambda y, p: tf.reduce_mean(tf.abs(p - y)),
    "of Keras's operations": lambda y, p: (
        tf.reduce_mean(keras.backend.square(y - p))
        if not hasattr(keras, "ops")
        else keras.ops.mean(keras.ops.square(y - p))
    ),
    "half": lambda y, p: 0.5 * tf.reduce_mean((tf.cast(y, tf.float32) - p) ** 2),
    "of scaled predictions": lambda y, p: tf.reduce_mean((y - (p * 2.0 + 1.0)) ** 2),
}
FRONTS = {
    "one layer": lambda: (),
    "others before it": lambda: (layers.Dense(5, activation="relu"), layers.Dropout(0.2), layers.Dense(5, "tanh")),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", BROADCAST)
def test_a_column_that_meets_a_row(out, name, front, kind):
    hook = hooked(out)
    fit(Trained(BROADCAST[name], *tensors(front=FRONTS[front])), **KINDS[kind])
    repeated, (found,) = run_of(hook)
    assert repeated == [SIZE] * STEPS
    assert found.evidence == {"input_repeated": SIZE, "target_repeated": SIZE}
    assert "column meets a row" in found.cause


MEANT = {
    "the same shape": lambda y, p: tf.reduce_mean((y - tf.squeeze(p, axis=-1)) ** 2),
    "two columns": lambda y, p: tf.reduce_mean((y[:, None] - p) ** 2),
    "differences of pairs": lambda y, p: tf.reduce_mean(((p - tf.transpose(p)) - (y[:, None] - y[None])) ** 2),
    "pairs that are weighted": lambda y, p: tf.reduce_mean((p - y) ** 2 * tf.abs(y[:, None] - y)),
    "a kernel": lambda y, p: -tf.reduce_mean(tf.exp(-((p - y) ** 2))),
    "one target": lambda y, p: tf.reduce_mean((p - y[0]) ** 2),
    "all but the first": lambda y, p: tf.reduce_mean((p - y[1:]) ** 2),
    "points of a grid": lambda y, p: tf.reduce_mean((p - tf.linspace(0.0, 1.0, SIZE + 1)) ** 2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEANT)
def test_pairs_that_are_meant_and_shapes_that_fit(out, name, kind):
    hook = hooked(out)
    fit(Trained(MEANT[name], *tensors()), **KINDS[kind])
    repeated, found = run_of(hook)
    assert repeated in (None, [1] * STEPS)
    assert found == []


def test_a_comparison_without_a_fault_is_told_of(out):
    hook = hooked(out)
    fit(Trained(MEANT["two columns"], *tensors()))
    assert run_of(hook)[0] == [1] * STEPS


def test_a_model_with_compute_loss(out):
    hook = hooked(out)
    fit(Computing(BROADCAST["squares"], *tensors()))
    assert run_of(hook)[0] == [SIZE] * STEPS


def test_a_loss_of_a_class_of_its_own(out):
    hook = hooked(out)
    fit(keras.Model(*tensors()), Squares())
    repeated, found = run_of(hook)
    assert (repeated, len(found)) == ([SIZE] * STEPS, 1)


def test_batches_of_one_sample(out):
    hook = hooked(out)
    fit(Trained(BROADCAST["squares"], *tensors()), data=lambda: data(1))
    repeated, found = run_of(hook)
    assert (set(repeated), found) == ({1}, [])


@pytest.mark.parametrize("loss", ["mse", keras.losses.MeanSquaredError()])
def test_losses_of_keras_are_not_looked_at(out, loss):
    hook = hooked(out)
    fit(keras.Model(*tensors()), loss)
    assert run_of(hook) == (None, [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("collections", [("usage",), ("usage", "gradients", "losses")])
def test_a_training_is_the_same_bit_for_bit(out, kind, collections):
    def run(hook):
        # Of Keras 2, dropout that XLA compiles draws other numbers in each run.
        front = FRONTS["others before it"] if kind == "compiled" else lambda: (layers.Dense(5, "relu"),)
        weights = fit(Trained(BROADCAST["squares"], *tensors(front=front)), **KINDS[kind])
        if hook:
            assert run_of(hook)[0] == [SIZE] * STEPS
        return weights

    for one, other in zip(run(None), run(hooked(out, collections)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_looked_at_unasked(out):
    hook = hooked(out, ["gradients"])
    fit(Trained(BROADCAST["squares"], *tensors()))
    hook.close()
    assert smd.create_trial(hook.out_dir).tensor_names(regex="^usage/") == []
