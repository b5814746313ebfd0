"""What the agent replaces of Keras, and wrappers that a program puts around it: both go on doing what they did."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("there is no Keras", allow_module_level=True)

from harness.compare import Both, assert_untouched, noted, run_both, saved_steps
from harness.keras_ways import variables_of
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

KERAS_3 = int(version("keras").split(".")[0]) >= 3
BACKENDS = [
    backend
    for backend in ("tensorflow", "torch")
    if importlib.util.find_spec(backend) is not None and (KERAS_3 or backend == "tensorflow")
]


def check(both):
    """Both runs went as they should; returns what was saved."""
    assert_untouched(both, stderr=False)
    assert "failed" not in both.agent.stderr, both.agent.stderr
    return both.trial


@pytest.mark.parametrize("backend", BACKENDS)
def test_everything_that_is_replaced_can_be_wrapped_at_any_time(backend, runner):
    script, file = SUBJECTS / "keras/wrapped.py", str(runner.folder / "replaced.txt")
    config = {"HookParameters": {"save_interval": 2, "save_all": True}}
    more = {"config": config, "SMD_AGENT_STRICT": "1", **variables_of(backend)}
    scout = runner.by_variable(script, file, "scout", name="alone", **more)
    assert scout.returncode == 0, scout.stderr
    assert "failed" not in scout.stderr, scout.stderr
    names = {name.rpartition(".")[2] for name in Path(file).read_text().split()}
    assert {"fit", "make_train_function", "__call__", "compute_loss", "on_epoch_end"} <= names
    both = run_both(runner, script, file, name="wrapped", config=config, strict=True, **variables_of(backend))
    trial = check(both)
    assert "inside" in both.plain.stdout
    assert saved_steps(trial) == saved_steps(create_trial(str(runner.folder / "alone")))


@pytest.mark.parametrize("backend", BACKENDS)
def test_makers_of_step_functions_that_are_not_keras_own(backend, runner):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    trial = check(run_both(runner, SUBJECTS / "keras/makers.py", config=config, strict=True, **variables_of(backend)))
    for number, name in enumerate(["overridden", "wrapped"]):
        steps = list(range(8 * number, 8 * number + 8))
        gradients = trial.tensor_names(regex=f"gradients/.*{name}")
        assert len(gradients) == 2
        assert [trial.tensor(gradient).steps(mode=ModeKeys.TRAIN) for gradient in gradients] == [steps, steps]
    assert trial.tensor("loss").steps(mode=ModeKeys.TRAIN) == list(range(16))


def test_a_variable_of_a_loop_with_tapes_and_of_fit_has_one_name(runner):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    program = SUBJECTS / "keras/tape_and_predict.py"
    trial = check(run_both(runner, program, config=config, strict=True, **variables_of("tensorflow")))
    names = [*trial.tensor_names(collection="weights"), *trial.tensor_names(collection="biases")]
    looped = [name for name in names if "looped" in name]
    assert len(looped) == 4
    assert all(name.startswith("weights/") for name in looped)
    fitted = [name for name in names if "fitted" in name]
    assert len(fitted) == 4
    assert all(name.startswith("fitted_") for name in fitted)
    for name in looped + fitted:
        assert len(trial.tensor(name).steps(mode=ModeKeys.TRAIN)) == 3
        assert len(trial.tensor(name).steps(mode=ModeKeys.PREDICT)) == 2


def test_a_library_that_is_not_known_is_a_backend_more(runner):
    if not KERAS_3 or importlib.util.find_spec("jax") is None:
        pytest.skip("there is no Keras 3 with JAX")
    script, run = SUBJECTS / "keras/on_jax.py", runner.folder / "run"
    told = runner.plain(script, str(run), **variables_of("jax"))
    trial = check(Both(runner.plain(script, **variables_of("jax")), told, run))
    # Two epochs of 4 steps; one step of validation after each, and one of prediction.
    assert trial.steps(mode=ModeKeys.TRAIN) == list(range(8))
    assert trial.steps(mode=ModeKeys.EVAL) == [0, 1]
    assert trial.steps(mode=ModeKeys.PREDICT) == [0]
    assert set(trial.tensor_names()) == {"loss", "val_loss", *(f"last/weights/last/{n}:0" for n in ("kernel", "bias"))}
    seen = noted(runner.folder / "run.npz")
    for step in range(8):
        kernel = trial.tensor("last/weights/last/kernel:0").value(step, mode=ModeKeys.TRAIN)
        np.testing.assert_array_equal(kernel, seen[str(step)])
