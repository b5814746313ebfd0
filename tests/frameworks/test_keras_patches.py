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
WAYS = {"tensorflow": ("graph", "eager"), "torch": ("eager",)}
BACKENDS = [
    backend
    for backend in WAYS
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


@pytest.mark.parametrize("backend,way", [(backend, way) for backend in BACKENDS for way in WAYS[backend]])
def test_everything_that_is_replaced_can_be_wrapped_at_any_time(backend, way, runner):
    script, file = "keras_wrapped.py", runner.folder / "replaced.txt"
    _, alone = train(runner, script, backend, str(file), "scout", way, name="alone", interval=2)
    names = {name.rpartition(".")[2] for name in file.read_text().split()}
    assert {"fit", "make_train_function", "__call__", "compute_loss", "on_epoch_end"} <= names
    plain = runner.plain(runner.script(script), str(file), way, **variables(backend))
    assert plain.returncode == 0, plain.stderr
    assert "inside" in plain.stdout
    told, trial = train(runner, script, backend, str(file), way, name="wrapped", interval=2)
    assert told == plain.stdout
    assert steps_of(trial) == steps_of(alone)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_maker_of_a_models_own_is_not_taken_for_ours(backend, runner):
    plain = runner.plain(runner.script("keras_overridden.py"), **variables(backend))
    assert plain.returncode == 0, plain.stderr
    told, trial = train(runner, "keras_overridden.py", backend, name="run", interval=1)
    assert told == plain.stdout
    assert trial.steps(mode=ModeKeys.TRAIN) == list(range(8))
    assert len(trial.tensor_names(collection="gradients")) == 2
    assert np.isfinite([trial.tensor("loss").value(step, mode=ModeKeys.TRAIN) for step in range(8)]).all()


@pytest.mark.skipif("tensorflow" not in BACKENDS, reason="there is no tensorflow")
def test_executions_of_several_steps_where_somebody_has_wrapped_what_makes_them(runner):
    script = "keras_overridden.py"
    plain = runner.plain(runner.script(script), "wrapped", **variables("tensorflow"))
    assert plain.returncode == 0, plain.stderr
    told, trial = train(runner, script, "tensorflow", "wrapped", name="run", interval=3)
    assert told == plain.stdout
    assert trial.steps(mode=ModeKeys.TRAIN) == [0, 3, 6]
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 2
    assert all(trial.tensor(name).steps(mode=ModeKeys.TRAIN) == [0, 3, 6] for name in gradients)


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
