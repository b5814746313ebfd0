"""What the agent replaces of Keras, and wrappers that a program puts around it: both go on doing what they did."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("there is no Keras", allow_module_level=True)

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

KERAS_3 = int(version("keras").split(".")[0]) >= 3
BACKENDS = [
    backend
    for backend in ("tensorflow", "torch")
    if importlib.util.find_spec(backend) is not None and (KERAS_3 or backend == "tensorflow")
]


def variables(backend):
    return {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}


def train(runner, script, backend, *words, name, interval):
    """Run a script with the agent; returns what it has printed and its run."""
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    strict = {"SMD_AGENT_STRICT": "1", **variables(backend)}
    found = runner.by_variable(runner.script(script), *words, name=name, config=config, **strict)
    assert found.returncode == 0, found.stderr
    assert "failed" not in found.stderr, found.stderr
    return found.stdout, create_trial(str(runner.folder / name))


def steps_of(trial):
    """At which steps each tensor was saved."""
    return {
        (name, mode): trial.tensor(name).steps(mode=mode)
        for name in trial.tensor_names()
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_everything_that_is_replaced_can_be_wrapped_at_any_time(backend, runner):
    script, file = "keras_wrapped.py", runner.folder / "replaced.txt"
    _, alone = train(runner, script, backend, str(file), "scout", name="alone", interval=2)
    names = {name.rpartition(".")[2] for name in file.read_text().split()}
    assert {"fit", "make_train_function", "__call__", "compute_loss", "on_epoch_end"} <= names
    plain = runner.plain(runner.script(script), str(file), **variables(backend))
    assert plain.returncode == 0, plain.stderr
    assert "inside" in plain.stdout
    told, trial = train(runner, script, backend, str(file), name="wrapped", interval=2)
    assert told == plain.stdout
    assert steps_of(trial) == steps_of(alone)


@pytest.mark.parametrize("backend", BACKENDS)
def test_makers_of_step_functions_that_are_not_keras_own(backend, runner):
    plain = runner.plain(runner.script("keras_makers.py"), **variables(backend))
    assert plain.returncode == 0, plain.stderr
    told, trial = train(runner, "keras_makers.py", backend, name="run", interval=1)
    assert told == plain.stdout
    for number, name in enumerate(["overridden", "wrapped"]):
        steps = list(range(8 * number, 8 * number + 8))
        gradients = trial.tensor_names(regex=f"gradients/.*{name}")
        assert len(gradients) == 2
        assert [trial.tensor(gradient).steps(mode=ModeKeys.TRAIN) for gradient in gradients] == [steps, steps]
    assert trial.tensor("loss").steps(mode=ModeKeys.TRAIN) == list(range(16))


def test_a_library_that_is_not_known_is_a_backend_more(runner):
    if not KERAS_3 or importlib.util.find_spec("jax") is None:
        pytest.skip("there is no Keras 3 with JAX")
    told = runner.plain(runner.script("keras_on_jax.py"), str(runner.folder / "run"), **variables("jax"))
    assert told.returncode == 0, told.stderr
    assert "failed" not in told.stderr
    plain = runner.plain(runner.script("keras_on_jax.py"), **variables("jax"))
    assert told.stdout == plain.stdout
    trial = create_trial(str(runner.folder / "run"))
    # Two epochs of 4 steps; one step of validation after each, and one of prediction.
    assert trial.steps(mode=ModeKeys.TRAIN) == list(range(8))
    assert trial.steps(mode=ModeKeys.EVAL) == [0, 1]
    assert trial.steps(mode=ModeKeys.PREDICT) == [0]
    assert set(trial.tensor_names()) == {"loss", "val_loss", *(f"last/weights/last/{n}:0" for n in ("kernel", "bias"))}
    with np.load(runner.folder / "run.npz") as seen:
        for step in range(8):
            kernel = trial.tensor("last/weights/last/kernel:0").value(step, mode=ModeKeys.TRAIN)
            np.testing.assert_array_equal(kernel, seen[str(step)])
