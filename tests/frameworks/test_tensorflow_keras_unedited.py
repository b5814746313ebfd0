"""Keras programs that know nothing of the agent: same weights and output with and without it, right values saved.

What is saved is compared with what the run without the agent saw, and with NumPy: a plain SGD step is w - rate * g, so
each saved gradient is what leads from one step's saved weights to the next step's.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("there is no tensorflow", allow_module_level=True)

from importlib.metadata import version

from smd_agent.core.modes import ModeKeys

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
    "updates",
    "optimizer",
    "input_digests",
    "parameters",
)


# Ways to train, and how many steps of training each takes: mostly two epochs of 5.
STEPS = {"plain": 11, "jit": 11, "eager": 11}
_SHORT = ["noise", "rows", "rows_jit", "rows_eager", "adam", "clipped", "gan", "silent", "loop", "subclassed"]
WINDOWS = ("windows", "windows_jit", "unknown_length")
STEPS |= dict.fromkeys([*_SHORT, *WINDOWS, "mixed", "accumulated" if KERAS_3 else "legacy"], 10)
STEPS |= {"twins": 20, "traced": 20, "several": 8}
ALL = tuple(STEPS)
# Keras 2 runs the steps one by one through a function of its own where one of an execution is saved.
SINGLE = "$" if KERAS_3 else "windows(jit)? train_step"


def first(way):
    """The first step of a way."""
    return sum(STEPS[before] for before in ALL[: ALL.index(way)])


@pytest.fixture(scope="module")
def runs(keras_runs):
    return keras_runs("keras/programs.py", *ALL, **QUIET)


@pytest.fixture(scope="module")
def found(runs):
    return runs.agent(*ALL, name="every", collections=EVERYTHING, but=SINGLE)


@pytest.mark.parametrize("way", ["plain", "jit", "eager"])
def test_a_model_does_all_it_can(way, found):
    trial = found.trial
    # Two epochs of 5 steps, validated in one or two of 20 rows; then 72 rows, by 32.
    kernel = found.weight(f"{way}_b/kernel")
    start = first(way)
    assert found.steps(kernel) == [*range(start, start + 11)]
    evaluations, predictions = (found.steps(kernel, mode) for mode in (EVAL, PREDICT))
    assert evaluations == [*range(evaluations[0], evaluations[0] + len(evaluations))]
    assert len(evaluations) in (2 * 1 + 3 + 1, 2 * 2 + 3 + 1)
    assert predictions == [*range(predictions[0], predictions[0] + 4)]
    assert found.check_updates(f"{way}_") == 10 * 10
    assert found.check_seen(way, start) == 10 * (10 + 2)
    assert found.check_moves(f"{way}_") == 10 * 10
    # train_on_batch is the last step, test_on_batch comes after it.
    gradients = trial.tensor_names(regex=f"^gradients/(.*/)?{way}_.*Grad$")
    assert len(gradients) == 10
    for name in gradients:
        weight = found.weight(name[len("gradients/") : -len("Grad")])
        changed = found.value(weight, start + 10) - found.value(name, start + 10)
        np.testing.assert_array_equal(changed, found.value(weight, evaluations[-1], EVAL))
        assert found.steps(name, EVAL) == found.steps(name, PREDICT) == []
    assert set(gradients) <= set(trial.tensor_names(collection="gradients"))
    owned = f"^{way}_.*/weights/"
    weights, biases = (set(trial.tensor_names(collection=name)) for name in ("weights", "biases"))
    assert len(weights.intersection(trial.tensor_names(regex=owned))) == 9
    assert len(biases.intersection(trial.tensor_names(regex=owned))) == 3
    assert set(trial.tensor_names(collection="metrics")) >= {"accuracy", "val_accuracy"}
    assert bool(trial.tensor_names(regex=f"^{way}_b/outputs$")) == (way != "jit")
    if way != "jit":
        check_layers(found, way, start, evaluations[0], predictions[0])


def test_collections_and_lines(found):
    trial = found.trial
    assert found.stderr.count("with jit_compile=True inputs and outputs of layers are not saved") == 1
    assert {"loss", "batch_loss", "val_loss"} <= set(trial.tensor_names(collection="losses"))
    assert len(trial.tensor_names(collection="optimizer_variables")) >= 1
    # What is compiled is neither traced again nor once more, but for the single steps of Keras 2.
    traces = {key[1]: int(value) for key, value in found.seen.items() if key[0] == "traces"}
    ours = {key[1]: int(value) for key, value in found.ours.items() if key[0] == "traces"}
    print(traces, ours)
    assert ours.keys() == traces.keys() == {*ALL}
    assert {way for way in ALL if ours[way] != traces[way]} <= (set() if KERAS_3 else {*WINDOWS})


def check_layers(found, way, start, evaluation, prediction):
    """Outputs are what NumPy makes of the saved inputs and weights."""
    images = np.random.default_rng(0)
    images.normal(size=(80, 6))
    images = images.normal(size=(72, 8, 8, 2)).astype("float32")
    last = f"{way}_b"
    prefix = f"{last}/weights/{last}"
    for mode, step in ((TRAIN, start + 3), (EVAL, evaluation), (PREDICT, prediction + 1)):
        inputs = found.value(f"{last}/inputs", step, mode)
        product = inputs @ found.value(f"{prefix}/kernel:0", step, mode) + found.value(f"{prefix}/bias:0", step, mode)
        np.testing.assert_allclose(product, found.value(f"{last}/outputs", step, mode), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(
            found.value("predictions", step, mode), found.value(f"{last}/outputs", step, mode)
        )
    np.testing.assert_array_equal(found.value("inputs", start + 3), images[48:64])
    np.testing.assert_array_equal(found.value(f"{way}_conv/inputs", start + 3), images[48:64])
    logits = found.value("predictions", start + 3).astype("float64")
    labels = found.value("labels", start + 3).astype(int).reshape(-1)
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels]
    np.testing.assert_allclose(found.value("batch_loss", start + 3), each.mean(), rtol=1e-5)


def test_models_of_every_kind(found):
    trial = found.trial
    assert trial.steps(mode=TRAIN) == list(range(sum(STEPS.values())))
    for way in ("noise", "clipped", "traced", "tracedjit", "silent", "subclassed"):
        assert found.check_updates(f"{way}_") == 4 * 9, way
        assert found.check_moves(f"{way}_") == 4 * 9, way
    assert found.check_updates("(made|judged)") == found.check_moves("(made|judged)") == 4 * 9
    # Rows that come up several times are added in another order.
    for way in ("rows", "rowsjit", "rowseager"):
        assert found.check_updates(f"{way}_", exact=False) == 3 * 9
    shown = {"noise": "noise", "rows": "rows", "rows_jit": "rowsjit", "rows_eager": "rowseager", "adam": "adam"}
    for way, name in {**shown, "clipped": "clipped", "subclassed": "subclassed"}.items():
        # A model that is built by its first step has no variables when the callback sees that begin.
        unbuilt = {"subclassed": 4}.get(way, 3 * KERAS_3 if "rows" in way else 0)
        assert found.check_seen(name, first(way)) == (10 * 5 if "rows" in way else 10 * 6) - unbuilt
    clipped = range(first("clipped"), first("clipped") + 10)
    for name in trial.tensor_names(regex="^gradients/.*clipped"):
        for step in clipped:
            assert np.linalg.norm(found.value(name, step)) <= 0.05 * 1.0001
    twins = first("twins")
    assert {tuple(found.steps(name)) for name in trial.tensor_names(regex="^gradients/.*twins_a/kernel")} == {
        tuple(range(twins, twins + 10)),
        tuple(range(twins + 10, twins + 20)),
    }
    assert found.check_updates("twins_") == 8 * 9
    check_adam(found, first("adam"))
    assert found.stderr.count("gradients that a train_step computes in a loop over tensors cannot be saved") == 1
    assert trial.tensor_names(regex="^gradients/.*loop") == []


def test_models_in_turn(found):
    start = first("several")
    # Each has 2 steps of an epoch at a time.
    for model, offset in (("severalone_a", 0), ("severaltwo_last", 2)):
        steps = [start + offset + step for step in (0, 1, 4, 5)]
        assert found.steps(found.weight_of(model)) == steps
        assert len(found.steps(found.weight_of(model), EVAL)) == 2
    assert found.check_updates("several(one|two)_") == 2 * 4 * 2


def check_adam(found, start):
    """The weights follow from the saved gradients by Adam's formula."""
    (name,) = found.trial.tensor_names(regex="^gradients/.*adam_a/kernelGrad$")
    weight = found.weight(name[len("gradients/") : -len("Grad")])
    first = second = 0.0
    value = found.value(weight, start).astype("float64")
    for number in range(1, 10):
        gradient = found.value(name, start + number - 1).astype("float64")
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = 0.01 * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        value = value - rate * first / (np.sqrt(second) + 1e-7)
        np.testing.assert_allclose(found.value(weight, start + number), value, rtol=1e-4, atol=1e-5)


def test_executions_of_several_steps_and_data_of_unknown_length(found):
    for way, name in {"windows": "windows_", "windows_jit": "windowsjit_", "unknown_length": "unknown_"}.items():
        # Two epochs of 5 steps each, which steps_per_execution=3 divides into 3 and 2.
        assert found.steps(found.weight(f"{name}a/kernel")) == [*range(first(way), first(way) + 10)]
        assert found.check_updates(name) == found.check_moves(name) == 4 * 9


def test_executions_of_which_some_steps_are_saved(runs):
    found = runs.agent(*WINDOWS, name="some", interval=4, collections=EVERYTHING, but=SINGLE)
    assert found.steps_of("weights") == sorted({*range(0, 30, 4)})
    assert list(found.steps("val_loss", EVAL)) == [4, 9]


def test_executions_that_draw_random_numbers_draw_the_same(keras_runs):
    # Of the four executions of several steps, the first two are looked at.
    runs = keras_runs("keras/programs.py", "windows_drawn", **QUIET)
    found = runs.agent("windows_drawn", name="drawn", interval=1000, collections=EVERYTHING)
    assert found.stderr.count("only the last step of an execution can be saved") == (not KERAS_3)


@pytest.mark.skipif(not KERAS_3, reason="new in Keras 3")
def test_gradients_are_saved_where_they_are_applied(found):
    assert found.check_updates("accumulated_") == 4 * 4
    assert found.check_moves("accumulated_") == 4 * 9
    (gradient,) = found.trial.tensor_names(regex="^gradients/.*accumulated_a/kernel")
    assert found.steps(gradient) == [first("accumulated") + step for step in (1, 3, 5, 7, 9)]
    line = "the optimizer applies the mean gradient of 2 steps in the last of them: gradients are saved in those steps"
    assert found.stderr.count(line) == 1


def test_scaled_losses(found):
    assert found.check_updates("mixed_", rate=0.125) == found.check_moves("mixed_") == 4 * 9


@pytest.mark.skipif(KERAS_3, reason="Keras 2 only")
def test_legacy_optimizers(found):
    assert found.check_updates("legacy_") == 4 * 9


def test_replicas_of_one_process_and_the_package_itself(keras_runs):
    ways = ("mirrored", "keras_package")
    found = keras_runs("keras/programs.py", "keras", *ways, **QUIET).agent(
        "keras", *ways, name="run", collections=EVERYTHING
    )
    assert found.trial.steps(mode=TRAIN) == list(range(20))
    assert found.check_updates("mirrored_") == found.check_updates("package_") == 4 * 9
    assert found.check_moves("mirrored_") == found.check_moves("package_") == 4 * 9
    assert found.check_seen("package", 10) == 10 * 6
    assert found.value("inputs", 0).shape == (8, 6)
    assert found.stderr.count("of 2 replicas the first one's batch_loss, labels and layers are saved") == 1


@pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="there is no tf_keras")
def test_tf_keras(keras_runs):
    found = keras_runs("keras/programs.py", "tf_keras", "keras_package", **QUIET).agent(
        "tf_keras", "keras_package", name="run", collections=EVERYTHING
    )
    assert found.check_updates() == 4 * 9
    assert found.check_seen("package") == 10 * 6


def test_steps_that_are_not_saved_are_left_alone(runs):
    ways = ("traced", "windows", "noise")
    found = runs.agent(*ways, name="never", interval=1000, collections=["weights", "gradients"], but=SINGLE)
    # The others hold the logs of an epoch.
    assert found.steps_of("weights") == found.steps_of("gradients") == [0]
    for way in ways:
        # Keras 2 makes the single step anew for the last one of an epoch, whose logs are saved.
        more = int(way == "windows" and not KERAS_3)
        assert found.ours["traces", way] - found.seen["traces", way] in (0, more)
