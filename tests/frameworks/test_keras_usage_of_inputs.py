"""What Keras's models are given, in the collection ``usage``, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.rule_runs import found as found_by_rule

import smd_agent.tensorflow as smd
from smd_agent.rules import UnusualInputs

keras = tf.keras
layers = keras.layers

KERAS_3 = str(getattr(keras, "__version__", "2")).startswith("3")

pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")


def saved(out, model, x, **options):
    """The numbers of the inputs in the second step of a ``fit``, by input and name."""
    model.compile(optimizer="sgd", loss="mse", **options)
    collections = ["usage", "input_digests"]
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=collections)
    rows = len(next(iter(x.values()))) if isinstance(x, dict) else len(x)
    model.fit(x, np.zeros((rows, 1)), batch_size=rows // 2, shuffle=False, verbose=0, callbacks=[hook])
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    found = {}
    for name in trial.tensor_names(regex="^usage/input/"):
        _, _, of, fact = name.split("/")
        found.setdefault(of.rpartition("_")[2], {})[fact] = float(trial.tensor(name).value(1, mode=smd.modes.TRAIN))
    return found


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_numbers_of_a_table(out, options):
    x = (np.random.default_rng(0).normal(size=(20, 6)) * [1, 100, 1, 0.01, 0, 3]).astype(np.float32)
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1, kernel_initializer="zeros")])
    found = saved(out, model, x, **options)["0"]
    part = x[10:]
    expected = {"min": part.min(), "max": part.max(), "mean": part.mean(), "std": part.std(), "not_finite": 0}
    scales = np.sqrt((part**2).mean(0))
    expected |= {"largest_scale": scales[1], "largest_column": 1, "smallest_scale": scales[3], "smallest_column": 3}
    expected |= {"as_it_is": 1}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rows", [30, 50])
def test_numbers_of_images_of_any_number(out, rows):
    x = np.random.default_rng(0).random((2 * rows, 28, 28, 1), np.float32)
    found = saved(out, sequential(layers.Conv2D(1, 28), layers.Flatten(), shape=(28, 28, 1)), x)["0"]
    length = rows * 784 // 64
    part = x[rows:].reshape(-1)[: 64 * length].reshape(64, length)[:, :256]
    expected = {"min": part.min(), "max": part.max(), "mean": part.mean(), "std": part.std(), "not_finite": 0}
    expected |= {"as_it_is": 1}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def sequential(*parts, shape=(6,)):
    return keras.Sequential([layers.Input(shape), *parts])


def functional(change):
    x = layers.Input((6,))
    return keras.Model(x, layers.Dense(1)(change(x)))


class Own(keras.Model):
    """A model with a call of its own."""

    def __init__(self):
        super().__init__()
        self.layer = layers.Dense(1)

    def call(self, x):
        return self.layer(x / 255)


class OwnSequential(keras.Sequential):
    """One that is put together by Keras, but for its call."""

    def call(self, x, *args, **kwargs):
        return super().call(x / 255)


MODELS = {
    "dense": (lambda: sequential(layers.Dense(1)), 1),
    "unbuilt": (lambda: keras.Sequential([layers.Dense(1)]), 1),
    "flattened": (lambda: sequential(layers.Flatten(), layers.Dense(1)), 1),
    "nested": (lambda: sequential(sequential(layers.Dense(2)), layers.Dense(1)), 1),
    "scaled": (lambda: sequential(layers.Rescaling(1 / 255), layers.Dense(1)), 0),
    "normalised": (lambda: sequential(layers.BatchNormalization(), layers.Dense(1)), 0),
    "functional": (lambda: functional(lambda x: x), 1),
    "functional, flattened": (lambda: functional(layers.Flatten()), 1),
    # Keras 2 does not say what a model inside of another one is given: the fact is left out.
    "functional, nested": (lambda: functional(sequential(layers.Dense(2))), 1 if KERAS_3 else None),
    "functional, nested behind a layer": (
        lambda: functional(lambda x: sequential(layers.Dense(2))(layers.Dense(6)(x))),
        1,
    ),
    "functional, scaled": (lambda: functional(lambda x: x / 255), 0),
    "functional, normalised": (lambda: functional(layers.LayerNormalization()), 0),
    "own call": (Own, None),
    "own call of a sequence": (lambda: OwnSequential([layers.Input((6,)), layers.Dense(1)]), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_whether_a_layer_gets_the_input(out, name):
    make, known = MODELS[name]
    assert saved(out, make(), np.ones((4, 6), np.float32))["0"].get("as_it_is") == known


def test_several_inputs(out):
    a, b, c = layers.Input((2,), name="a"), layers.Input((3,), name="b"), layers.Input((1,), dtype="int32", name="c")
    words = layers.Flatten()(layers.Embedding(5, 2)(c))
    joined = layers.Concatenate()([layers.Dense(2)(a), layers.BatchNormalization()(b), words])
    model = keras.Model({"a": a, "b": b, "c": c}, layers.Dense(1)(joined))
    x = {"a": np.ones((4, 2), np.float32), "b": np.ones((4, 3), np.float32), "c": np.ones((4, 1), np.int32)}
    found = saved(out, model, x)
    assert {name: numbers["as_it_is"] for name, numbers in found.items()} == {"0": 1, "1": 0, "2": 0}


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_bytes_of_images_that_nothing_scales_are_found(out, options):
    x = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8)
    model = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(1, 8), layers.Flatten()])
    model.compile("sgd", "mse", **options)
    hook = smd.KerasHook(
        out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage", "input_digests"]
    )
    model.fit(x, np.zeros((40, 1)), batch_size=10, shuffle=False, verbose=0, callbacks=[hook])
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    (title,) = {name.rpartition("/")[0] for name in trial.tensor_names(regex="^usage/input/")}
    found = {fact: float(trial.tensor(f"{title}/{fact}").value(1)) for fact in ("max", "mean", "as_it_is", "integers")}
    part = x[10:20]
    assert found == pytest.approx({"max": part.max(), "mean": part.mean(), "as_it_is": 1, "integers": 1})
    assert found_by_rule(trial, UnusualInputs()) == {f"{title}/std": (0, 3)}
