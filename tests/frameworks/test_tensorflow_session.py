"""Monitored sessions of tf.compat.v1: found without an edit, or given a hook; the same training, every value right."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

from harness.compare import assert_untouched, noted, run_both, said
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAMS = SUBJECTS / "tensorflow/session_programs.py"
NAMES = ["adam", "momentum", "clipped", "data"]
COLLECTIONS = ["weights", "biases", "gradients", "optimizer_variables"]
CONFIGS = [{"CollectionName": name} for name in COLLECTIONS]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def check(trial, expected, every, mode=ModeKeys.TRAIN):
    members = {name: set(trial.tensor_names(collection=name)) for name in [*COLLECTIONS, "losses"]}
    for key, value in expected.items():
        step, collection, name = key.split("|")
        assert name in members[collection]
        steps = trial.tensor(name).steps(mode=mode)
        assert (int(step) in steps) == (int(step) % every == 0), key
        if int(step) in steps:
            np.testing.assert_array_equal(trial.tensor(name).value(int(step), mode=mode), value, err_msg=key)


@pytest.fixture(scope="module")
def plain(shared_runner):
    done = shared_runner.plain(PROGRAMS, str(shared_runner.folder / "plain.npz"), *NAMES, **QUIET)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_and_its_values_are_right(every, plain, runner):
    file = runner.folder / "expected.npz"
    config = {"HookParameters": {"save_interval": every}, "CollectionConfigurations": CONFIGS}
    both = run_both(runner, PROGRAMS, str(file), *NAMES, plain=plain, config=config, **QUIET)
    # Weights bit for bit, and nothing new in the graphs.
    assert_untouched(both, stderr=False)
    assert len(both.said) == 2, both.agent.stderr
    trial, values = both.trial, noted(file)
    check(trial, values, every)
    steps = {int(key.split("|")[0]) for key in values}
    assert trial.steps(mode=ModeKeys.TRAIN) == [step for step in sorted(steps) if step % every == 0]
    saved = {name for name in COLLECTIONS for name in trial.tensor_names(collection=name)}
    assert saved - {key.split("|")[2] for key in values} <= {name for name in saved if name.startswith("clip")}


@pytest.mark.cold
def test_what_a_program_clips_by_itself_is_saved_as_it_is_applied(runner):
    config = {"HookParameters": {"save_interval": 1}, "CollectionConfigurations": CONFIGS}
    done = runner.by_variable(PROGRAMS, str(runner.folder / "expected.npz"), "clipped", config=config, **QUIET)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(runner.folder / "run"))
    order = ["clipped/emb:0", "clipped/w1:0", "clipped/bias1:0", "clipped/w2:0"]
    weights = {name: trial.tensor(name) for name in order}
    applied = [n for n in trial.tensor_names(collection="gradients") if n.startswith("clip_by_global_norm")]
    gradients = dict(zip(order, sorted(applied, key=lambda name: int(name.split("_")[-1].split(":")[0])), strict=True))
    for step in (0, 1):
        found = {name: trial.tensor(gradients[name]).value(step) for name in order}
        for name in order:
            after = weights[name].value(step) - np.float32(0.1) * found[name]
            np.testing.assert_allclose(weights[name].value(step + 1), after, rtol=1e-6, atol=1e-7)
        # TensorFlow takes the norm of the embedding's rows before those of the same index are added up.
        assert np.sqrt(sum((found[name].astype("d") ** 2).sum() for name in order[1:])) <= 0.5
    # The loss, which no fetch of the program's needs, follows from what the update needs.
    (loss,) = trial.tensor_names(collection="losses")
    assert all(0 < trial.tensor(loss).value(step) < 10 for step in (0, 1, 2))


EDITED = """
import sys
import numpy as np, tensorflow as tf
import smd_agent.tensorflow as smd
v1 = tf.compat.v1
hook = smd.SessionHook(sys.argv[1], save_config=smd.SaveConfig(save_interval=2), include_collections=["gradients"])
smd.set_hook(hook)
assert smd.get_hook("session") is hook
expected = {}
with tf.Graph().as_default():
    x = v1.placeholder(tf.float32, [4, 3])
    w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
    doubled = tf.identity(2.0 * x @ w, name="doubled")
    loss = tf.reduce_mean(doubled ** 2)
    update = hook.wrap_optimizer(v1.train.GradientDescentOptimizer(0.01)).minimize(loss)
    hook.add_to_collection("mine", doubled)
    rng = np.random.default_rng(0)
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        for step in range(5):
            if step == 3:
                hook.set_mode(smd.modes.EVAL)
            rows = rng.normal(size=(4, 3)).astype("f")
            weights = session.run(w)
            session.run(update, {x: rows})
            out = 2 * rows @ weights
            expected[f"{step}/doubled"] = out
            expected[f"{step}/gradient"] = 2 * rows.T @ (2 * out / out.size)
hook.close()
np.savez(sys.argv[2], **expected)
"""


def test_a_script_that_hands_its_hook_to_the_session(runner):
    script, file = runner.write(EDITED), runner.folder / "expected.npz"
    done = runner.plain(script, str(runner.folder / "run"), str(file), **QUIET)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(runner.folder / "run"))
    values = noted(file)
    (gradient,) = trial.tensor_names(collection="gradients")
    assert trial.tensor_names(collection="mine") == ["doubled:0"]
    # Steps 0 to 2 without a mode, then EVAL from its own 0 on, in which there are no gradients.
    places = {(ModeKeys.GLOBAL, 0): 0, (ModeKeys.GLOBAL, 2): 2, (ModeKeys.EVAL, 0): 3}
    for (mode, step), number in places.items():
        value = trial.tensor("doubled:0").value(step, mode=mode)
        np.testing.assert_allclose(value, values[f"{number}/doubled"], rtol=1e-5, atol=1e-6)
    for step in (0, 2):
        value = trial.tensor(gradient).value(step)
        np.testing.assert_allclose(value, values[f"{step}/gradient"], rtol=1e-5, atol=1e-6)
    assert trial.tensor(gradient).steps() == [0, 2]


@pytest.mark.cold
def test_a_plain_session_is_said_to_be_out_of_sight(runner):
    script = runner.write(
        "import tensorflow as tf\nv1 = tf.compat.v1\n"
        "with tf.Graph().as_default(), v1.Session() as session:\n"
        "    w = v1.get_variable('w', [2])\n"
        "    update = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w**2))\n"
        "    session.run(v1.global_variables_initializer())\n    session.run(update)\nprint('trained')\n"
    )
    done = runner.by_variable(script, **QUIET)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    (line,) = said(done)
    assert line.startswith("smd_agent: nothing was captured")
    assert "monitored session" in line
