"""Keras programs that know nothing of the agent: same weights and output with and without it, right values saved.

What is saved is compared with what the run without the agent saw, and with NumPy: a plain SGD step is w - rate * g, so
each saved gradient is what leads from one step's saved weights to the next step's.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("there is no tensorflow", allow_module_level=True)

from importlib.metadata import version

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAMS = Path(__file__).with_name("keras_programs.py")
KERAS_3 = int(version("keras").split(".")[0]) >= 3
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
TRAIN, EVAL, PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
EVERYTHING = (
    "losses",
    "metrics",
    "weights",
    "biases",
    "gradients",
    "inputs",
    "outputs",
    "layers",
    "optimizer_variables",
)


def config(interval=1, collections=EVERYTHING):
    named = [{"CollectionName": name} for name in collections]
    return {"HookParameters": {"save_interval": interval}, "CollectionConfigurations": named}


class Outcome:
    """A run with the agent, beside what the same run without it saw."""

    def __init__(self, folder, stderr):
        self.trial = create_trial(str(folder / "run"))
        self.stderr = stderr
        self.seen = {tuple(key.split("|")): value for key, value in np.load(folder / "plain.npz").items()}

    def value(self, name, step, mode=TRAIN):
        return self.trial.tensor(name).value(step, mode=mode)

    def steps(self, name, mode=TRAIN):
        return self.trial.tensor(name).steps(mode=mode)

    def weight(self, variable):
        (found,) = [
            name for name in self.trial.tensor_names(regex="weights/") if name.endswith(f"weights/{variable}:0")
        ]
        return found

    def check_updates(self, of="", rate=1.0, exact=True):
        """Every saved gradient leads from the weights of its step to those of the next; how many did."""
        checked = 0
        for name in self.trial.tensor_names(regex=f"^gradients/.*{of}.*Grad$"):
            weight = self.weight(name[len("gradients/") : -len("Grad")])
            for step in self.steps(name):
                if step + 1 in self.steps(weight):
                    found = self.value(weight, step) - np.float32(rate) * self.value(name, step)
                    following = self.value(weight, step + 1)
                    if exact:
                        np.testing.assert_array_equal(found, following, f"{name} {step}")
                    else:
                        np.testing.assert_allclose(found, following, rtol=1e-5, atol=1e-6)
                    checked += 1
        return checked

    def check_seen(self, way, first=0):
        """Weights and logs are those that the program's own callback saw; how many were compared."""
        mine = {key: value for key, value in self.seen.items() if key[0] == way}
        for (_, step, name), value in mine.items():
            stored = name if name in ("loss", "accuracy") else self.weight(name)
            np.testing.assert_array_equal(self.value(stored, first + int(step)).reshape(value.shape), value)
        return len(mine)


@pytest.fixture
def both(runner, tmp_path):
    def run(*words, interval=1, collections=EVERYTHING, but=None):
        def told(result):
            return [line for line in result.stdout.splitlines() if line != but]

        plain = runner.plain(PROGRAMS, tmp_path / "plain.npz", *words, **QUIET)
        assert plain.returncode == 0, plain.stderr
        settings = config(interval, collections)
        ours = runner.by_variable(PROGRAMS, str(tmp_path / "ours.npz"), *words, config=settings, **QUIET)
        assert (told(ours), ours.returncode) == (told(plain), 0), ours.stderr
        assert "failed" not in ours.stderr, ours.stderr
        return Outcome(tmp_path, ours.stderr)

    return run


@pytest.mark.parametrize("way", ["plain", "jit", "eager"])
def test_a_model_does_all_it_can(way, both):
    found = both(way)
    trial = found.trial
    # Two epochs of 5 steps, validated in one of 20 rows; then 72 rows, by 32.
    assert trial.steps(mode=TRAIN) == list(range(11))
    assert trial.steps(mode=EVAL) == list(range(2 * 1 + 3 + 1)) or trial.steps(mode=EVAL) == list(range(2 * 2 + 3 + 1))
    assert trial.steps(mode=PREDICT) == list(range(4))
    assert found.check_updates() == 10 * 10
    assert found.check_seen(way) == 10 * (10 + 2)
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 10
    assert {mode for name in gradients for mode in (EVAL, PREDICT) if trial.tensor(name).steps(mode=mode)} == set()
    assert len(trial.tensor_names(collection="weights")) == 9
    assert len(trial.tensor_names(collection="biases")) == 3
    assert set(trial.tensor_names(collection="losses")) == {"loss", "batch_loss", "val_loss"}
    assert set(trial.tensor_names(collection="metrics")) == {"accuracy", "val_accuracy"}
    assert len(trial.tensor_names(collection="optimizer_variables")) >= 1
    line = "with jit_compile=True inputs and outputs of layers are not saved"
    assert found.stderr.count(line) == (way == "jit")
    assert bool(trial.tensor_names(regex="^predictions$")) == (way != "jit")
    if way != "jit":
        check_layers(found, way)


def check_layers(found, way):
    """Outputs are what NumPy makes of the saved inputs and weights."""
    images = np.random.default_rng(0)
    images.normal(size=(80, 6))
    images = images.normal(size=(72, 8, 8, 2)).astype("float32")
    last = f"{way}_b"
    prefix = f"{last}/weights/{last}"
    for mode, step in ((TRAIN, 3), (EVAL, 0), (PREDICT, 1)):
        inputs = found.value(f"{last}/inputs", step, mode)
        product = inputs @ found.value(f"{prefix}/kernel:0", step, mode) + found.value(f"{prefix}/bias:0", step, mode)
        np.testing.assert_allclose(product, found.value(f"{last}/outputs", step, mode), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(
            found.value("predictions", step, mode), found.value(f"{last}/outputs", step, mode)
        )
    np.testing.assert_array_equal(found.value("inputs", 3), images[48:64])
    np.testing.assert_array_equal(found.value(f"{way}_conv/inputs", 3), images[48:64])
    logits = found.value("predictions", 3).astype("float64")
    labels = found.value("labels", 3).astype(int).reshape(-1)
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels]
    np.testing.assert_allclose(found.value("batch_loss", 3), each.mean(), rtol=1e-5)


def test_models_of_every_kind(both):
    ways = ["noise", "rows", "rows_jit", "rows_eager", "adam", "clipped", "twins", "traced", "gan", "silent", "loop"]
    found = both(*ways)
    trial = found.trial
    # Each trains 10 steps; "twins" and "traced" are two models each.
    assert trial.steps(mode=TRAIN) == list(range(130))
    assert found.check_updates("noise_") == found.check_updates("clipped_") == 4 * 9
    assert found.check_updates("traced") == 8 * 9
    assert found.check_updates("(made|judged)") == 4 * 9
    assert found.check_updates("silent_") == 4 * 9
    # Rows that come up several times are added in another order.
    assert found.check_updates("rows", exact=False) == 3 * 3 * 9
    for way, first in {"noise": 0, "rows": 10, "rowsjit": 20, "rowseager": 30, "adam": 40, "clipped": 50}.items():
        # In Keras 3, models of rows have no variables yet when the callback sees the first step begin.
        assert found.check_seen(way, first) == (10 * 5 - 3 * KERAS_3 if "rows" in way else 10 * 6)
    for step in range(50, 60):
        for name in trial.tensor_names(regex="^gradients/.*clipped"):
            assert np.linalg.norm(found.value(name, step)) <= 0.05 * 1.0001
    assert {tuple(found.steps(name)) for name in trial.tensor_names(regex="^gradients/.*twins_a/kernel")} == {
        tuple(range(60, 70)),
        tuple(range(70, 80)),
    }
    assert found.check_updates("twins_") == 8 * 9
    check_adam(found)
    assert found.stderr.count("gradients that a train_step computes in a loop over tensors cannot be saved") == 1
    assert trial.tensor_names(regex="^gradients/.*loop") == []


def check_adam(found):
    """The weights follow from the saved gradients by Adam's formula."""
    (name,) = found.trial.tensor_names(regex="^gradients/.*adam_a/kernelGrad$")
    weight = found.weight(name[len("gradients/") : -len("Grad")])
    first = second = 0.0
    value = found.value(weight, 40).astype("float64")
    for number in range(1, 10):
        gradient = found.value(name, 39 + number).astype("float64")
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = 0.01 * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        value = value - rate * first / (np.sqrt(second) + 1e-7)
        np.testing.assert_allclose(found.value(weight, 40 + number), value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interval", [1, 4])
def test_executions_of_several_steps_and_data_of_unknown_length(interval, both):
    # Keras 2 runs the steps one by one through a function of its own where one of them is saved.
    ways = ["windows", "windows_jit", "unknown_length"]
    found = both(*ways, interval=interval, but=None if KERAS_3 else "train_step")
    # Two epochs of 5 steps each, which steps_per_execution=3 divides into 3 and 2.
    assert found.trial.steps(mode=TRAIN) == sorted({*range(0, 30, interval)})
    assert list(found.steps("val_loss", EVAL)) == [4, 9]
    if interval == 1:
        assert found.check_updates() == 12 * 9


@pytest.mark.skipif(not KERAS_3, reason="new in Keras 3")
def test_gradients_are_saved_where_they_are_applied(both):
    found = both("accumulated", "mixed")
    assert found.check_updates("accumulated_") == 4 * 4
    assert found.steps(found.trial.tensor_names(regex="^gradients/.*accumulated_a/kernel")[0]) == [1, 3, 5, 7, 9]
    line = "the optimizer applies the mean gradient of 2 steps in the last of them: gradients are saved in those steps"
    assert found.stderr.count(line) == 1
    assert found.check_updates("mixed_", rate=0.125) == 4 * 9


def test_replicas_of_one_process(both):
    found = both("mirrored")
    assert found.trial.steps(mode=TRAIN) == list(range(10))
    assert found.check_updates() == 4 * 9
    assert found.value("inputs", 0).shape == (8, 6)
    assert found.stderr.count("of 2 replicas the first one's batch_loss, labels and layers are saved") == 1


@pytest.mark.skipif(KERAS_3, reason="Keras 2 only")
def test_legacy_optimizers_and_scaled_losses(both):
    found = both("legacy", "mixed")
    assert found.check_updates("legacy_") == 4 * 9
    assert found.check_updates("mixed_", rate=0.125) == 4 * 9


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_whatever_keras_is_imported_as(package, both):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}")
    found = both("keras_package", package)
    assert found.check_updates() == 4 * 9
    assert found.check_seen("package") == 10 * 6


def test_steps_that_are_not_saved_are_left_alone(both):
    found = both("traced", "windows", "noise", interval=1000, collections=["weights", "gradients"])
    assert found.trial.steps(mode=TRAIN) == [0]
    assert re.search(r"saved 2 steps", found.stderr)
