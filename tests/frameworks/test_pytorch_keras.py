"""Keras 3 on PyTorch: same weights and output with the agent and without, right values; other backends are told of."""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import version

import numpy as np
import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("keras") is None or int(version("keras").split(".")[0]) < 3:
    pytest.skip("there is no Keras 3", allow_module_level=True)

from harness.compare import assert_untouched, run_both, said
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

WARM = ("torch", "keras")

PROGRAM = "keras/other_backends.py"
TORCH = {"KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
TRAIN, EVAL, PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
EVERYTHING = (
    *("losses", "metrics", "weights", "biases", "gradients"),
    *("inputs", "outputs", "layers", "optimizer_variables"),
    *("updates", "optimizer", "input_digests", "parameters"),
)
WAYS = ("plain", "clipped", "accumulated", "adam", "mixed", "sequential", "gan", "jit")
STEPS = {way: 11 if way == "plain" else 10 for way in WAYS}


def first(way):
    return sum(STEPS[before] for before in WAYS[: WAYS.index(way)])


@pytest.fixture(scope="module")
def runs(keras_runs):
    return keras_runs(PROGRAM, *WAYS, **TORCH)


@pytest.fixture(scope="module")
def found(runs):
    return runs.agent(*WAYS, name="every", collections=EVERYTHING)


def test_a_model_does_all_it_can(found):
    trial = found.trial
    assert trial.steps(mode=TRAIN) == list(range(sum(STEPS.values())))
    # Two validations of 2 steps, one evaluation of 3 and one batch; prediction of 3 batches and one.
    assert trial.steps(mode=EVAL) == list(range(2 * 2 + 3 + 1))
    assert trial.steps(mode=PREDICT) == list(range(4))
    assert found.check_updates("plain_") == 10 * 8
    assert found.check_seen("plain") == 10 * (8 + 2)
    # train_on_batch is the last step, test_on_batch comes after it.
    kernel = found.weight("plain_b/kernel")
    changed = found.value(kernel, 10) - found.value("gradients/plain_b/kernelGrad", 10)
    np.testing.assert_array_equal(changed, found.value(kernel, 7, EVAL))
    plain = set(trial.tensor_names(regex="^plain_.*weights/"))
    assert len(plain & set(trial.tensor_names(collection="weights"))) == 7
    assert len(plain & set(trial.tensor_names(collection="biases"))) == 3
    assert set(trial.tensor_names(collection="losses")) == {
        "loss",
        "batch_loss",
        "val_loss",
        "judge_loss",
        "maker_loss",
    }
    assert {"accuracy", "val_accuracy"} <= set(trial.tensor_names(collection="metrics"))
    for mode, step in ((TRAIN, 3), (EVAL, 0), (PREDICT, 1)):
        product = found.value("plain_b/inputs", step, mode) @ found.value(kernel, step, mode)
        product += found.value("plain_b/weights/plain_b/bias:0", step, mode)
        np.testing.assert_allclose(product, found.value("plain_b/outputs", step, mode), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(
            found.value("predictions", step, mode), found.value("plain_b/outputs", step, mode)
        )
    rows = np.random.default_rng(0)
    rows.normal(size=(80, 6))
    images = rows.normal(size=(72, 8, 8, 2)).astype("float32")
    np.testing.assert_array_equal(found.value("inputs", 3), images[48:64])
    logits, labels = found.value("predictions", 3).astype("float64"), found.value("labels", 3).astype(int)
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(16), labels]
    np.testing.assert_allclose(found.value("batch_loss", 3), each.mean(), rtol=1e-5)


def test_gradients_are_those_that_are_applied(found):
    assert found.check_updates("clipped_") == 4 * 9
    for step in range(first("clipped"), first("clipped") + 10):
        for name in found.trial.tensor_names(regex="^gradients/clipped"):
            assert np.linalg.norm(found.value(name, step)) <= 0.05 * 1.0001
    assert found.check_updates("accumulated_") == 4 * 4
    steps = [first("accumulated") + step for step in (1, 3, 5, 7, 9)]
    assert found.steps("gradients/accumulated_a/kernelGrad") == steps
    line = "the optimizer applies the mean gradient of 2 steps in the last of them: gradients are saved in those steps"
    assert found.stderr.count(line) == 1
    assert found.check_updates("mixed_", rate=0.125) == 4 * 9
    assert found.check_updates("seq_", exact=False) == 3 * 9
    assert found.check_updates("judged", rate=0.0625) == 2 * 9
    assert found.check_seen("adam", first("adam")) == 10 * 6


def test_variables_of_every_optimizer(found):
    start = first("gan")
    names = found.trial.tensor_names(collection="optimizer_variables")
    (velocity,) = [name for name in names if name.endswith("made_kernel_momentum:0")]
    weight = found.weight("maker/made/kernel")
    assert not found.value(velocity, start).any()
    for step in range(start, start + 9):
        moved = 0.5 * found.value(velocity, step) - 0.0625 * found.value("gradients/maker/made/kernelGrad", step)
        np.testing.assert_allclose(found.value(velocity, step + 1), moved, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            found.value(weight, step + 1), found.value(weight, step) + moved, rtol=1e-5, atol=1e-7
        )


def test_facts_of_training(found):
    trial = found.trial
    assert found.check_moves("plain_") == 10 * 8
    assert found.check_moves("adam_") == found.check_moves("jit_") == found.check_moves("mixed_") == 9 * 4
    assert found.check_moves("accumulated_") == 9 * 4
    (rate,) = trial.tensor_names(regex="^optimizer/Adam/lr$")
    assert [found.value(rate, step).item() for step in found.steps(rate)][:10] == pytest.approx([0.01] * 10)
    (scale,) = trial.tensor_names(regex="^optimizer/.*/loss_scale$")
    assert found.steps(scale) == [*range(first("mixed"), first("mixed") + 10)]
    digests = [found.value("input_digest/plain_0", step).item() for step in range(10)]
    # Two epochs of the same five batches.
    assert digests[:5] == digests[5:]
    assert len({*digests}) == 5
    told = json.loads(str(found.value("parameters/plain", 0)[0]))
    assert {key: (fact["optimizer"] is not None, fact["gradient"]) for key, fact in told.items()} == {
        key: (fact["requires_grad"], fact["requires_grad"]) for key, fact in told.items()
    }
    assert [fact["requires_grad"] for fact in told.values()].count(False) == 2
    assert found.value("parameters/plain", 0).shape == (1,)


def test_the_models_are_not_taken_for_ones_trained_without_keras(found):
    assert "another framework" not in found.stderr
    assert "torch.optim" not in found.stderr


def test_compiled_steps(found):
    assert found.check_seen("jit", first("jit")) == 10 * 6
    assert found.trial.tensor_names(regex="gradients/jit|jit_a/outputs") == []
    line = "with jit_compile=True on PyTorch gradients, inputs and outputs are not saved; weights and logs are"
    assert found.stderr.count(line) == 1


def test_steps_between(runs):
    found = runs.agent("plain", "clipped", name="some", interval=4, collections=EVERYTHING)
    assert found.steps_of("weights") == list(range(0, 21, 4))
    assert found.check_seen_at_saved("plain") == 3 * 8


def test_a_loop_beside_fit(runs, keras_runs):
    loop = keras_runs(PROGRAM, "clipped", "own_loop", **TORCH).agent(
        "clipped", "own_loop", name="run", collections=EVERYTHING
    )
    assert loop.trial.steps(mode=TRAIN) == list(range(10))
    assert loop.stderr.count("holds a run of another framework: no training with pytorch is saved") == 1


@pytest.mark.cold
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_another_backend_is_said(backend, runner):
    # Keras imports it for its NumPy backend too.
    if importlib.util.find_spec("jax") is None:
        pytest.skip("there is no jax")
    ways = ["asked"] if backend == "numpy" else ["asked", "adam", "clipped"]
    variables = {**TORCH, "KERAS_BACKEND": backend}
    both = run_both(runner, SUBJECTS / PROGRAM, str(runner.folder / "seen.npz"), *ways, **variables)
    # Keras imports TensorFlow too.
    assert_untouched(both, stderr=False)
    line = f"smd_agent: Keras on the {backend} backend is not captured, only on TensorFlow and PyTorch"
    assert both.said == [f"{line}: nothing of it is saved"]


@pytest.mark.cold
def test_another_backend_is_said_in_one_line_whatever_else_is_imported(runner):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("there is no jax")
    program = runner.write(
        "import torch, keras, numpy as np\n"
        "model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0)\n"
    )
    result = runner.by_launcher("--out", str(runner.folder / "run"), program, **{**TORCH, "KERAS_BACKEND": "jax"})
    assert result.returncode == 0, result.stderr
    assert [line.partition(", ")[0] for line in said(result)] == ["smd_agent: Keras on the jax backend is not captured"]
