"""The last step of `fit` is there when `fit` has returned, and what is given afterwards goes into it."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.core.modes import ModeKeys

# Keras 2.15 draws seeds in a way that Python warns of.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
X, Y = np.ones((16, 4), np.float32), np.ones((16, 1), np.float32)
EVERY_THIRD = smd.SaveConfig(save_interval=3)

SCRIPT = """
import sys, time
import numpy as np
import tensorflow as tf
import smd_agent.tensorflow as smd

hook = smd.KerasHook(sys.argv[1], save_config=smd.SaveConfig(save_interval=3))
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = np.ones((16, 4)), np.ones((16, 1))
model.fit(x, y, batch_size=4, epochs=2, validation_data=(x, y), verbose=0)
print("fit has returned", flush=True)
time.sleep(600)
"""


def compiled(**options):
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", **options)
    return model


def values(trial, name, mode=TRAIN):
    tensor = trial.tensor(name)
    return {step: np.ravel(tensor.value(step, mode=mode))[0].item() for step in tensor.steps(mode=mode)}


def test_a_trial_in_the_same_process_has_the_last_step_of_each_call(out):
    hook = smd.KerasHook(out, save_config=EVERY_THIRD)
    model = compiled()
    history = model.fit(X, Y, batch_size=4, epochs=2, validation_data=(X, Y), verbose=0).history
    trial = smd.create_trial(out)
    # An epoch's last step has what that gave.
    assert trial.steps(mode=TRAIN) == [0, 3, 6, 7]
    assert [*values(trial, "val_loss", EVAL).values()] == pytest.approx(history["val_loss"])
    model.evaluate(X, Y, batch_size=8, verbose=0)
    assert trial.steps(mode=EVAL) == [0, 3, 6, 7, 9]
    hook.close()
    assert smd.create_trial(out).steps() == trial.steps()


def test_a_trial_in_the_same_process_has_the_last_step_of_a_loop_with_a_tape(out):
    hook = smd.KerasHook(out)
    w = tf.Variable(tf.ones([4, 2]), name="w")
    optimizer = hook.wrap_optimizer(tf.keras.optimizers.SGD(0.1))
    for _ in range(3):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((tf.ones([8, 4]) @ w) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    assert smd.create_trial(out).steps() == [0]
    hook.save_scalar("after", 1)
    trial = smd.create_trial(out)
    assert trial.steps() == [0, 2]
    hook.close()
    assert smd.create_trial(out).steps() == [0, 2]


def test_who_is_killed_after_fit_has_its_last_step(out):
    with subprocess.Popen([sys.executable, "-c", SCRIPT, out], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "fit has returned\n"
            limit = time.monotonic() + 60
            # The disk has it soon, not at once.
            while time.monotonic() < limit and 7 not in smd.create_trial(out).steps(mode=EVAL):
                time.sleep(0.05)
        finally:
            process.kill()
    trial = smd.create_trial(out)
    assert trial.steps(mode=TRAIN) == [0, 3, 6, 7]
    assert len(values(trial, "val_loss", EVAL)) == 2


@pytest.mark.parametrize("reads", [False, True])
def test_what_is_given_after_fit_goes_into_its_last_step(out, reads):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["outputs"])
    model = compiled()
    live = None
    for number in range(4):
        model.fit(X, Y, batch_size=4, verbose=0)
        if reads:
            live = live or smd.create_trial(out)
            live.steps()
        hook.save_scalar("score", number)
    if reads:
        assert values(live, "scalar/score") == {3: 0, 7: 1, 11: 2, 15: 3}
    hook.close()
    trial = smd.create_trial(out)
    assert values(trial, "scalar/score") == {3: 0, 7: 1, 11: 2, 15: 3}
    assert trial.steps(mode=TRAIN) == sorted({*range(0, 16, 2), 3, 7, 11, 15})


def test_a_fit_that_fails_leaves_its_last_step(out):
    class Fails(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                raise KeyboardInterrupt

    hook = smd.KerasHook(out, save_config=EVERY_THIRD)
    with pytest.raises(KeyboardInterrupt):
        compiled().fit(X, Y, batch_size=4, verbose=0, callbacks=[Fails()])
    assert smd.create_trial(out).steps(mode=TRAIN) == [0, 3]
    hook.close()
