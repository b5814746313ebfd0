"""Modes in which models of ``fit`` and their layers are called, in the collection ``usage``."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.rule_runs import verdict

import smd_agent.tensorflow as smd
from smd_agent.rules import DropoutTooLarge, EvaluationInTrainingMode, TrainingInEvaluationMode

keras = tf.keras
layers = keras.layers

pytestmark = [
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
]

WAYS = {"compiled": {}, "eager": {"run_eagerly": True}, "xla": {"jit_compile": True}}
X = np.random.RandomState(0).rand(12, 4).astype("f4")
Y = np.random.RandomState(1).rand(12, 1).astype("f4")
TRAIN, EVAL = smd.modes.TRAIN, smd.modes.EVAL


def parts():
    return [layers.Dense(5), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dropout(0.0), layers.Dense(1)]


def sequential(*more):
    return keras.Sequential([layers.Input((4,)), *more, *parts()], name="net")


class Own(keras.Model):
    """A model with a call of its own, and perhaps steps."""

    def __init__(self, told=None, in_training=True, in_evaluation=False):
        super().__init__(name="net")
        self.parts = parts()
        self.told = told
        self.in_training, self.in_evaluation = in_training, in_evaluation

    def call(self, x, training=None):
        for part in self.parts:
            named = {"training": self.told} if self.told is not None and isinstance(part, layers.Dropout) else {}
            x = part(x, **named)
        return x

    def train_step(self, data):
        x, y = data[:2]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self(x, training=self.in_training)) ** 2)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}

    def test_step(self, data):
        x, y = data[:2]
        return {"loss": tf.reduce_mean((y - self(x, training=self.in_evaluation)) ** 2)}


def fitted(out, model, way="compiled", x=X):
    """Train a model; the trial, and the facts of its modes in the last step of training and of evaluation."""
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage", "losses"])
    model.compile("sgd", "mse", **{"jit_compile": False, **WAYS[way]})
    model.fit(x, Y, batch_size=4, verbose=0, validation_data=(x[:8], Y[:8]))
    hook.close()
    trial = smd.create_trial(out)
    found = {TRAIN: {}, EVAL: {}}
    for name in trial.tensor_names(regex="^usage/model/"):
        _, _, title, fact = name.split("/")
        assert title.startswith("net")
        for mode, facts in found.items():
            tensor = trial.tensor(name)
            if steps := tensor.steps(mode=mode):
                assert steps == trial.steps(mode=mode)
                facts[fact] = round(float(tensor.value(steps[-1], mode=mode)), 6)
    return trial, found[TRAIN], found[EVAL]


def causes(trial, rule, *facts):
    """What a rule says of these facts, and of no others."""
    findings = verdict(trial, rule).findings
    assert {one.tensor.rpartition("/")[2] for one in findings} == {*facts}
    return [one.cause for one in findings]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_fit(out, way):
    _, train, evaluate = fitted(out, sequential(), way)
    assert train == {"training": 1, "dropout": 1, "dropped": 0.2, "batch_norm": 1}
    assert evaluate == {"training": 0, "dropout": 0, "dropped": 0.2, "batch_norm": 0}


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_a_normalisation_that_is_frozen(out, way):
    frozen = layers.BatchNormalization(trainable=False)
    _, train, _ = fitted(out, sequential(frozen), way)
    assert train == {"training": 1, "dropout": 1, "dropped": 0.2, "batch_norm": 0.5}


def test_layers_that_are_told_apart(out):
    _, train, evaluate = fitted(out, Own(told=True))
    assert (train["dropout"], evaluate["dropout"], evaluate["training"]) == (1, 1, 0)
    _, train, _ = fitted(f"{out}-other", Own(told=False))
    assert (train["dropout"], train["training"]) == (0, 1)


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_a_step_that_forgets_to_train(out, way):
    trial, train, _ = fitted(out, Own(in_training=None), way)
    assert train == {"training": 0, "dropout": 0, "dropped": 0.2, "batch_norm": 0}
    (cause,) = causes(trial, TrainingInEvaluationMode(), "training")
    assert "training=True" in cause


def test_an_evaluation_that_trains(out):
    trial, _, evaluate = fitted(out, Own(in_evaluation=True))
    assert evaluate == {"training": 1, "dropout": 1, "dropped": 0.2, "batch_norm": 1}
    found = causes(trial, EvaluationInTrainingMode(), "dropout", "batch_norm")
    assert all("training=True" in cause for cause in found)


def test_a_dropout_that_leaves_little(out):
    trial, train, _ = fitted(out, sequential(layers.Dropout(0.9)))
    assert train["dropped"] == 0.9
    assert len(causes(trial, DropoutTooLarge(), "dropped")) == 1


def test_recurrent_layers_drop_too(out):
    model = keras.Sequential([layers.Input((4, 1)), layers.LSTM(3, dropout=0.3), layers.Dense(1)], name="net")
    _, train, evaluate = fitted(out, model, x=X[..., None])
    assert train == {"training": 1, "dropout": 1, "dropped": 0.3}
    assert evaluate == {"training": 0, "dropout": 0, "dropped": 0.3}


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_a_training_is_the_same_bit_for_bit(out, way):
    def run(folder):
        keras.utils.set_random_seed(0)
        model = sequential()
        if folder:
            fitted(folder, model, way)
        else:
            model.compile("sgd", "mse", **{"jit_compile": False, **WAYS[way]})
            model.fit(X, Y, batch_size=4, verbose=0, validation_data=(X[:8], Y[:8]))
        return [np.asarray(value) for value in model.get_weights()]

    for one, other in zip(run(None), run(out), strict=True):
        np.testing.assert_array_equal(one, other)
