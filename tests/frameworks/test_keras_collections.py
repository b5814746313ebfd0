"""Collections of a Keras training: optimizer variables, and the logs of each epoch."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.core.modes import ModeKeys

# Keras 2.15 draws seeds in a way that Python warns of.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
X, Y = np.random.RandomState(0).rand(32, 4).astype("f4"), np.random.RandomState(1).randint(0, 3, 32)


def fit(hook, epochs=2, rate=0.01, eager=False, **options):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(rate, beta_1=0.8), loss, metrics=["accuracy"], run_eagerly=eager)
    callbacks = [] if hook is None else [hook]
    return model.fit(X, Y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, callbacks=callbacks, **options)


def test_a_collection_of_ones_own_has_variables_of_the_optimizer(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=4), include_collections=["mine"])
    hook.get_collection("mine").include("(?i)adam")
    fit(hook)
    hook.close()
    names = smd.create_trial(out).tensor_names(collection="mine")
    assert any("kernel" in name for name in names), names


def test_what_an_optimizer_is_set_to_is_among_its_variables(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=4), include_collections=["optimizer_variables"])
    fit(hook)
    hook.close()
    trial = smd.create_trial(out)
    names = trial.tensor_names(collection="optimizer_variables")
    for setting, value in (("learning_rate", 0.01), ("beta_1", 0.8), ("beta_2", 0.999)):
        (name,) = [name for name in names if name.lower().endswith(f"/{setting}:0")]
        assert trial.tensor(name).steps(mode=TRAIN) == [0, 4]
        assert float(np.ravel(trial.tensor(name).value(4, mode=TRAIN))[0]) == pytest.approx(value)


class Counting(tf.keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that sees how often it is called."""

    calls = 0

    def __call__(self, step):
        self.calls += 1
        return 0.01


@pytest.mark.parametrize("eager", [False, True])
def test_a_schedule_of_the_programs_own_is_called_as_often_as_without_the_agent(out, eager):
    calls = []
    every = smd.SaveConfig(save_interval=1)
    for hook in (None, smd.KerasHook(out, save_config=every, include_collections=["optimizer_variables", "optimizer"])):
        schedule = Counting()
        fit(hook, rate=schedule, eager=eager)
        calls.append(schedule.calls)
    hook.close()
    assert calls[0] == calls[1] > 0
    names = smd.create_trial(out).tensor_names(collection="optimizer_variables")
    assert not [name for name in names if "learning_rate" in name]


@pytest.mark.parametrize("validation", [False, True])
def test_the_logs_of_each_epoch_are_saved(out, validation):
    hook = smd.KerasHook(out)
    history = fit(hook, epochs=3, **({"validation_data": (X, Y)} if validation else {})).history
    # Nothing but the step at the beginning is due; each epoch has four.
    hook.close()
    trial = smd.create_trial(out)
    for name in ("loss", "accuracy"):
        tensor = trial.tensor(name)
        assert tensor.steps(mode=TRAIN) == [0, 3, 7, 11]
        found = [float(np.ravel(tensor.value(step, mode=TRAIN))[0]) for step in (3, 7, 11)]
        assert found == pytest.approx(history[name], rel=1e-6)


def test_what_comes_up_late_is_in_its_collection_before_the_run_ends(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1))
    fit(hook, epochs=2, validation_data=(X, Y))
    hook.flush()
    trial = smd.create_trial(out)
    assert "val_accuracy" in trial.tensor_names()
    assert "val_accuracy" in trial.collection("metrics").tensor_names
