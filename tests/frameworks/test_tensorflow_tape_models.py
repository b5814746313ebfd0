"""Keras models that a loop with a GradientTape calls: their modes, inputs and last steps, in ``usage``."""

from __future__ import annotations

import json

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.rule_runs import verdict

import smd_agent.tensorflow as smd
from smd_agent.rules import TrainingInEvaluationMode

keras = tf.keras
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

WAYS = {"eager": None, "compiled": {}, "xla": {"jit_compile": True}}
X = np.random.RandomState(0).rand(4, 6, 4).astype("f4")
WORDS = np.array([[3, 1, 2, 1, 0, 0], [4, 4, 1, 0, 0, 0], [2, 3, 0, 0, 0, 0], [1, 2, 3, 4, 1, 2]])


def model_of(name="net", *more):
    parts = [layers.Dense(5), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(1)]
    return keras.Sequential([layers.Input((4,)), *more, *parts], name=name)


class Own(keras.Model):
    """A model with a call of its own, of which an error may come."""

    def __init__(self):
        super().__init__(name="net")
        self.drop, self.out = layers.Dropout(0.5), layers.Dense(1)

    def call(self, x, training=None):
        if x.shape[0] == 1:
            raise ValueError("one row")
        return self.out(self.drop(x, training=training))


def train(hook, way, loss_of, model, inputs=X):
    """The weights after a training with a loss of the model and inputs."""
    optimizer = keras.optimizers.SGD(0.01)

    def step(x):
        with hook.wrap_tape(tf.GradientTape()) if hook else tf.GradientTape() as tape:
            loss = loss_of(model, x)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    run = step if WAYS[way] is None else tf.function(step, **WAYS[way])
    for x in inputs:
        run(x if way == "eager" else tf.constant(x))
    return [variable.numpy() for variable in model.variables]


def hooked(out, *collections):
    collections = ["usage", *collections]
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=collections)


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def told(trial, kind="model"):
    """The facts of models in the last step, by name."""
    names = trial.tensor_names(regex=f"^usage/{kind}/")
    return {name.removeprefix(f"usage/{kind}/"): trial.tensor(name).value(3).item() for name in names}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("training", [True, False, None])
def test_modes_of_a_model(out, way, training):
    hook = hooked(out)
    words = {} if training is None else {"training": training}
    train(hook, way, lambda model, x: tf.reduce_mean(model(x, **words) ** 2), model_of())
    share = float(bool(training))
    of_layers = {"net/dropout": share, "net/batch_norm": share, "net/dropped": pytest.approx(0.2)}
    trial = trial_of(hook)
    assert told(trial) == {"net/training": share, **of_layers}
    assert len(verdict(trial, TrainingInEvaluationMode()).findings) == 1 - share


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_is_not_trained_is_no_finding(out, way):
    hook, teacher = hooked(out), model_of("teacher")
    train(hook, way, lambda model, x: tf.reduce_mean((model(x, training=True) - teacher(x)) ** 2), model_of())
    trial = trial_of(hook)
    assert {name.partition("/")[0] for name in told(trial)} == {"net"}
    assert not verdict(trial, TrainingInEvaluationMode()).findings


@pytest.mark.parametrize("way", WAYS)
def test_inputs_of_a_model(out, way):
    hook = hooked(out, "input_digests")
    train(hook, way, lambda model, x: tf.reduce_mean(model(x, training=True) ** 2), model_of())
    trial = trial_of(hook)
    found = told(trial, "input")
    assert found["net_0/max"] == pytest.approx(X[3].max())
    assert found["net_0/as_it_is"] == 1
    digests = {trial.tensor("input_digest/net_0").value(step).item() for step in range(4)}
    assert len(digests) == 4


def test_inputs_that_a_function_has_captured(out):
    hook, whole = hooked(out), tf.constant(X[0])
    train(hook, "compiled", lambda model, _: tf.reduce_mean(model(whole, training=True) ** 2), model_of())
    assert told(trial_of(hook), "input")["net_0/max"] == pytest.approx(X[0].max())


@pytest.mark.parametrize("way", WAYS)
def test_the_last_step_of_padding(out, way):
    parts = [layers.Input((6,), dtype="int64"), layers.Embedding(5, 3), layers.LSTM(2, name="lstm"), layers.Dense(1)]
    hook = hooked(out)
    model = keras.Sequential(parts, name="net")
    train(hook, way, lambda model, x: tf.reduce_mean(model(x, training=True) ** 2), model, [WORDS] * 4)
    trial = trial_of(hook)
    assert told(trial, "layer") == {"lstm/last_only": 1, "lstm/rows": 4, "lstm/padded_rows": 3, "lstm/padding": 3}


@pytest.mark.parametrize("way", WAYS)
def test_the_line_of_a_model_is_that_of_its_call(out, way):
    hook = hooked(out, "parameters")
    model = Own()
    train(hook, way, lambda model, x: tf.reduce_mean(model(x, training=True) ** 2), model)
    trial = trial_of(hook)
    lines = [json.loads(trial.tensor(name).value(0).item()) for name in trial.tensor_names(regex="^line/model/net$")]
    ((file, _, source),) = lines
    assert file == __file__
    assert "model(x, training=True)" in source


def test_an_error_in_a_model_ends_its_call(out):
    hook = hooked(out)

    def loss_of(model, x):
        with pytest.raises(ValueError, match="one row"):
            Own()(x[:1], training=True)
        return tf.reduce_mean(model(x) ** 2)

    train(hook, "eager", loss_of, Own())
    assert told(trial_of(hook))["net/training"] == 0


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_are_the_same_without(out, way):
    def trained(hook):
        # XLA draws what is dropped anew in each function of Keras 2.
        keras.utils.set_random_seed(0)
        model = keras.Sequential([layers.Input((4,)), layers.Dense(5), layers.BatchNormalization(), layers.Dense(1)])
        return train(hook, way, lambda model, x: tf.reduce_mean(model(x, training=True) ** 2), model)

    with_hook = trained(hooked(out, "input_digests"))
    assert all(np.array_equal(*pair) for pair in zip(with_hook, trained(None), strict=True))
