"""GradientTape loops that know nothing of the agent: the same training with and without it, and every value right."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

from harness.compare import assert_untouched, noted, run_both, said
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAMS = SUBJECTS / "tensorflow/tape_programs.py"
LIMITS = SUBJECTS / "tensorflow/tape_limits.py"
TRAINING = ["forms", "byhand", "random", "nested", "shapes", "gan", "higher", "recomputed", "scaled"]
SAVED = ["weights", "biases", "gradients"]
COLLECTIONS = [{"CollectionName": name} for name in SAVED]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def watched(runner, script, programs, every, plain=None):
    """Run the programs with the agent and without; both runs, and what they say was to be saved."""
    file = runner.folder / "run.npz"
    config = {"HookParameters": {"save_interval": every}, "CollectionConfigurations": COLLECTIONS}
    both = run_both(runner, script, str(file), *programs, plain=plain, config=config, **QUIET)
    # Weights bit for bit, losses, how often a body ran and how often it was traced.
    assert_untouched(both, stderr=False)
    return both, noted(file)


def check(trial, expected, every):
    """Whatever a saved step has to hold is there with its value, and nothing else is."""
    found = {(step, name) for name in trial.tensor_names() for step in trial.tensor(name).steps(mode=ModeKeys.TRAIN)}
    keys = {key: re.match(r"(\d+)[|~](.*)", key).groups() for key in expected}
    due = {(int(step), name): key for key, (step, name) in keys.items() if int(step) % every == 0}
    assert found == set(due)
    for (step, name), key in due.items():
        value = trial.tensor(name).value(step, mode=ModeKeys.TRAIN)
        if "~" in key:
            np.testing.assert_allclose(value, expected[key], rtol=2e-5, atol=1e-6, err_msg=key)
        else:
            np.testing.assert_array_equal(value, expected[key], err_msg=key)


@pytest.fixture(scope="module")
def plain(shared_runner):
    done = shared_runner.plain(PROGRAMS, str(shared_runner.folder / "plain.npz"), *TRAINING, **QUIET)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_and_its_values_are_right(every, plain, runner):
    both, expected = watched(runner, PROGRAMS, TRAINING, every, plain)
    assert len(both.said) == 2, both.agent.stderr
    trial = both.trial
    check(trial, expected, every)
    members = {name: set(trial.tensor_names(collection=name)) for name in [*SAVED, "losses"]}
    names = set(trial.tensor_names())
    assert members["losses"] == {"loss", "loss_1"}
    assert members["gradients"] == {name for name in names if name.startswith("gradients/")}
    assert members["biases"] == {name for name in names if name.startswith("weights/") and "bias" in name}
    assert members["weights"] == {name for name in names if name.startswith("weights/")} - members["biases"]


def test_of_replicas_the_first_is_saved(runner):
    both, expected = watched(runner, LIMITS, ["replicas"], 1)
    check(both.trial, expected, 1)
    assert sum("of 2 replicas the first one's loss and gradients are saved" in line for line in both.said) == 1


@pytest.mark.cold
def test_what_cannot_be_saved_is_said_and_functions_are_let_go(runner):
    programs = ["impossible", "gone"]
    both, expected = watched(runner, LIMITS, programs, 1)
    assert "gone True True []" in both.agent.stdout
    trial = both.trial
    for key, value in expected.items():
        step, name = key.split("|")
        np.testing.assert_array_equal(trial.tensor(name).value(int(step), mode=ModeKeys.TRAIN), value, err_msg=key)
    # The steps before those of "gone" hold nothing else.
    names = {name for step in (0, 1) for name in trial.tensor_names(step=step)}
    assert names == {key.split("|")[1] for key in expected}
    lines = "\n".join(both.said)
    assert lines.count("call the tf.function once for each step") == 1
    assert lines.count("returns a resource") == 1
    assert lines.count("where another tape records its call") == 1


EDITED = """
import sys
import numpy as np, tensorflow as tf
import smd_agent.tensorflow as smd
tf.keras.utils.set_random_seed(1)
hook = smd.KerasHook(sys.argv[1], save_config=smd.SaveConfig(save_interval=2),
                     include_collections=["weights", "gradients", "optimizer_variables"])
w = tf.Variable(tf.ones([4, 2]), name="w")
optimizer = hook.wrap_optimizer(tf.keras.optimizers.SGD(0.1, momentum=0.9))
optimizer.build([w])
hook.wrap_optimizer(object())
expected = {}
def step(x):
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    gradient = tape.gradient(loss, w)
    optimizer.apply_gradients([(gradient, w)])
    return loss, gradient
def run(step, mode, count):
    hook.set_mode(mode)
    for number in range(count):
        x = tf.random.normal([8, 4])
        before, momentum = w.numpy(), [v for v in optimizer_variables() if is_momentum(name(v))][0].numpy()
        loss, gradient = step(x)
        hook.save_scalar("number", number)
        for what, value in (("weight", before), ("momentum", momentum), ("loss", loss), ("gradient", gradient)):
            expected[f"{mode.name}/{number}/{what}"] = np.array(value)
def optimizer_variables():
    return optimizer.variables() if callable(optimizer.variables) else optimizer.variables
def is_momentum(name):
    return "momentum" in name or "m/" in name
def name(v):
    return getattr(v, "path", v.name) + v.name
run(step, smd.modes.TRAIN, 3)
run(tf.function(step, jit_compile=True), smd.modes.EVAL, 4)
hook.close()
np.savez(sys.argv[2], **expected)
"""


@pytest.mark.cold
def test_a_script_that_wraps_its_tapes_and_its_optimizer(runner):
    script = runner.write(EDITED)
    folder, file = runner.folder / "run", runner.folder / "expected.npz"
    done = runner.plain(script, str(folder), str(file), **QUIET)
    assert done.returncode == 0, done.stderr
    assert sum("a object cannot be wrapped: nothing of it is saved" in line for line in said(done)) == 1
    trial = create_trial(str(folder))
    values = noted(file)
    optimizer = trial.tensor_names(collection="optimizer_variables")
    (momentum,) = [name for name in optimizer if "momentum" in name or "m/" in name]
    names = {"weight": "weights/w:0", "gradient": "gradients/wGrad", "loss": "loss", "momentum": momentum}
    for mode, steps in ((ModeKeys.TRAIN, [0, 2]), (ModeKeys.EVAL, [0, 2])):
        for what, name in names.items():
            if mode is ModeKeys.EVAL and what in ("gradient", "momentum"):
                assert trial.tensor(name).steps(mode=mode) == []
                continue
            assert trial.tensor(name).steps(mode=mode) == steps
            for step in steps:
                saved = trial.tensor(name).value(step, mode=mode)
                np.testing.assert_array_equal(saved, values[f"{mode.name}/{step}/{what}"], err_msg=f"{name} {step}")
    numbers = trial.tensor("scalar/number")
    assert [numbers.value(step, mode=ModeKeys.TRAIN).item() for step in range(3)] == [0, 1, 2]


def test_a_compiled_step_that_is_gone_while_a_graph_is_built_is_released(runner):
    """It returns nothing, so that its values are in variables of the runtime, which are destroyed eagerly alone."""
    script = runner.write(
        "import gc\nimport tensorflow as tf\n"
        "w = tf.Variable([[1.0], [2.0]])\n"
        "@tf.function\n"
        "def step(x):\n"
        "    with tf.GradientTape() as tape:\n"
        "        loss = tf.reduce_mean((x @ w) ** 2)\n"
        "    w.assign_sub(0.1 * tape.gradient(loss, w))\n"
        "for _ in range(4):\n    step(tf.ones((3, 2)))\n"
        "print(w.numpy())\n"
        "with tf.Graph().as_default():\n    del step\n    gc.collect()\n"
    )
    both = run_both(runner, script, config={"HookParameters": {"save_interval": 1}}, **QUIET)
    assert_untouched(both, stderr=False)
    assert len(both.trial.steps()) == 4
    assert "Exception ignored" not in both.agent.stderr
