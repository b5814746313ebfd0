"""The series of GradientTape loops: a row for each step, saved or not, with the losses that the program prints."""

from __future__ import annotations

import gc
import json
import math
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.compare import assert_untouched, run_both
from harness.keras_ways import QUIET
from harness.killed import assert_series_survives

import smd_agent.tensorflow as smd
from smd_agent import guard
from smd_agent.analysis.trial import create_trial
from smd_agent.core import budget
from smd_agent.core.modes import ModeKeys
from smd_agent.tensorflow.tape_rows import TapeRows

keras = tf.keras
IS_KERAS_3 = hasattr(keras, "__version__") and keras.__version__.startswith("3")

pytestmark = [
    # Keras 3 makes a number out of a variable in a way that NumPy warns of.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
]

SELDOM = {"HookParameters": {"save_interval": 1000}}
SELDOM_SAVED = smd.SaveConfig(save_interval=1000)
EACH = {"HookParameters": {"save_interval": 1}, "CollectionConfigurations": [{"CollectionName": "losses"}]}

PARTS = """
import hashlib, json, random, sys
import numpy as np
import tensorflow as tf
keras = tf.keras
keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
x = rng.normal(size=(70, 4)).astype("float32")
y = (x.sum(axis=1, keepdims=True) ** 2).astype("float32")
mse = keras.losses.MeanSquaredError()
def net(units=1, size=4):
    layers = [keras.layers.Input((size,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.1)]
    return keras.Sequential([*layers, keras.layers.Dense(units)])
def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
def tell(losses, *models):
    for model in models:
        print(hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest())
    print(random.random(), np.random.rand(), float(tf.random.uniform(())))
    print(json.dumps(losses))
"""
LOOP = f"""{PARTS}
model, optimizer = net(), keras.optimizers.Adam(0.01)
def step(x, y):
    with tf.GradientTape() as tape:
        loss = mse(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
way = sys.argv[1]
if way != "eager":
    step = tf.function(step, jit_compile=way == "xla")
losses = []
for epoch in range(2):
    for rows, labels in batches():
        losses.append(float(step(rows, labels)))
    for rows, labels in batches():
        print(float(mse(labels, model(rows))))
tell(losses, model)
"""
GAN = f"""{PARTS}
maker, critic = net(4), net(1)
optimizers = [keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.02)]
cross = keras.losses.BinaryCrossentropy(from_logits=True)
def step(rows):
    noise = tf.random.stateless_normal((16, 4), (1, 2))
    with tf.GradientTape() as of_maker, tf.GradientTape() as of_critic:
        false, true = critic(maker(noise, training=True), training=True), critic(rows, training=True)
        maker_loss = cross(tf.ones_like(false), false)
        critic_loss = cross(tf.ones_like(true), true) + cross(tf.zeros_like(false), false)
    for tape, loss, model, optimizer in zip(
        (of_maker, of_critic), (maker_loss, critic_loss), (maker, critic), optimizers
    ):
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return {{"maker": maker_loss, "critic": critic_loss, "none": None}}
if sys.argv[1] != "eager":
    step = tf.function(step)
losses = []
for rows, _ in batches().repeat(2):
    found = step(rows)
    losses.append(float(found["maker"]) + float(found["critic"]))
tell(losses, maker, critic)
"""
ACCUMULATED = f"""{PARTS}
model, optimizer = net(), keras.optimizers.SGD(0.01)
losses = []
for _ in range(3):
    total = None
    for rows, labels in batches():
        with tf.GradientTape() as tape:
            loss = mse(labels, model(rows, training=True)) / 5
        gradients = tape.gradient(loss, model.trainable_variables)
        losses.append(float(loss))
        total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
    optimizer.apply_gradients(zip(total, model.trainable_variables))
tell(losses, model)
"""
# Two optimizers for the parts of one model, a persistent tape that is asked for each of them.
PARTED = f"""{PARTS}
model = net()
slow, fast = keras.optimizers.SGD(0.001), keras.optimizers.SGD(0.01)
losses = []
for rows, labels in batches().repeat(2):
    with tf.GradientTape(persistent=True) as tape:
        loss = mse(labels, model(rows, training=True))
    for optimizer, layer in ((slow, model.layers[0]), (fast, model.layers[-1])):
        optimizer.apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables))
    losses.append(float(loss))
tell(losses, model)
"""
# What is differentiated is computed in a function, by one that returns the loss among other things.
NESTED = f"""{PARTS}
model, optimizer = net(), keras.optimizers.SGD(0.01)
@tf.function
def loss_of(rows, labels):
    loss = mse(labels, model(rows, training=True))
    return loss + 0.0 * tf.reduce_sum(tf.random.normal((2,))) if sys.argv[1] == "random" else loss
@tf.function
def inner(rows, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(rows, labels)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return tf.shape(rows), loss
@tf.function
def outer(rows, labels):
    shape, loss = inner(rows, labels)
    return {{"z": loss, "a": shape, "m": [None, 1.5 * loss]}}
losses = [float(outer(rows, labels)["z"]) for rows, labels in batches().repeat(2)]
tell(losses, model)
"""
SCALED = f"""{PARTS}
w = tf.Variable([1.0, 2.0])
if hasattr(keras, "__version__"):
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**10)
    scale, unscale = optimizer.scale_loss, list
else:
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**10)
    scale, unscale = optimizer.get_scaled_loss, optimizer.get_unscaled_gradients
# Its own variables cannot be made in a function.
optimizer.build([w])
def step(factor):
    with tf.GradientTape() as tape:
        loss = factor * tf.reduce_sum(w)
        scaled = scale(loss)
    optimizer.apply_gradients(zip(unscale(tape.gradient(scaled, [w])), [w]))
    return loss
if sys.argv[1] != "eager":
    step = tf.function(step)
losses = [float(step(tf.constant(factor))) for factor in (1.0, float("inf"), 2.0, 3.0)]
tell(losses)
"""
KILLED = """
import tensorflow as tf
w = tf.Variable([1.0, 2.0])
step = 0
while True:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((w - 3.0) ** 2) + 0.001 * step
    w.assign_sub(0.001 * tape.gradient(loss, w))
    tell(step, loss)
    step += 1
"""


@pytest.fixture
def early_rests(monkeypatch):
    """Have steps rest after thirty rows."""
    monkeypatch.setattr(budget, "FIRST_ROWS", 30)


@pytest.fixture
def ran(runner):
    """Runs a program with the agent and without; gives the losses that it has printed, the table and both."""

    def run(script, *words, config=SELDOM):
        both = run_both(runner, runner.write(script), *words, config=config, strict=True, **QUIET)
        assert_untouched(both, stderr=False)
        return json.loads(both.plain.stdout.splitlines()[-1]), both.trial.series().get("steps"), both

    return run


@pytest.mark.parametrize("way", ["eager", "function", "xla"])
def test_each_step_has_a_row_with_the_loss_that_the_program_prints(ran, way):
    losses, table, both = ran(LOOP, way)
    assert table["series/loss"].tolist() == losses
    assert table.steps.tolist() == table.mode_steps.tolist() == [*range(10)]
    assert {*table.modes.tolist()} == {ModeKeys.TRAIN.value}
    assert table["series/learning_rate"].tolist() == [pytest.approx(0.01)] * 10
    assert np.isnan(table["series/seconds"][0])
    assert (table["series/seconds"][1:] > 0).all()
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0]


@pytest.mark.parametrize("way", ["eager", "function"])
def test_steps_that_are_saved_have_the_same_rows(ran, way):
    losses, table, both = ran(LOOP, way, config=EACH)
    assert table["series/loss"].tolist() == losses
    saved = both.trial.tensor("loss")
    assert [float(saved.value(step)) for step in range(10)] == losses


@pytest.mark.parametrize("way", ["eager", "function"])
def test_of_two_tapes_the_losses_are_added_up(ran, way):
    losses, table, _ = ran(GAN, way)
    assert table["series/loss"].tolist() == losses
    assert {*table["series/learning_rate"].tolist()} == {float(np.float32(0.01))}


def test_each_part_of_an_accumulated_gradient_has_a_row(ran):
    losses, table, _ = ran(ACCUMULATED)
    assert table["series/loss"].tolist() == losses
    rates = table.is_there("series/learning_rate")
    assert rates.tolist() == ([False] * 4 + [True]) * 3


def test_what_is_differentiated_for_two_optimizers_counts_once(ran):
    losses, table, _ = ran(PARTED)
    assert table["series/loss"].tolist() == losses
    assert {*table["series/learning_rate"].tolist()} == {float(np.float32(0.001))}


@pytest.mark.parametrize("way", ["plain", "random"])
def test_a_loss_is_found_through_functions_that_call_others(ran, way):
    losses, table, _ = ran(NESTED, way)
    assert table["series/loss"].tolist() == losses
    assert {*table["series/learning_rate"].tolist()} == {float(np.float32(0.01))}


def test_it_is_switched_off_by_a_key(ran):
    assert ran(LOOP, "eager", config={"HookParameters": {"series": False}})[1] is None


def test_steps_that_a_kill_ends_are_there(tmp_path):
    # A row is written when the next step begins.
    assert_series_survives(tmp_path, KILLED, late=2, times=2)


def variable():
    return tf.Variable([1.0, 2.0])


def tape_of(hook):
    return hook.wrap_tape(tf.GradientTape())


def train(hook, w, count, rate=0.01, wrap=lambda step: step, returns=True):
    """Steps of a loop; gives their losses."""

    @wrap
    def step(target):
        with tape_of(hook) as tape:
            loss = tf.reduce_mean((w - target) ** 2)
        w.assign_sub(rate * tape.gradient(loss, w))
        return loss if returns else target

    return [float(step(tf.constant(3.0 + number))) for number in range(count)]


@pytest.fixture
def hook(out):
    return smd.KerasHook(out, save_config=SELDOM_SAVED)


def test_rows_of_a_loop_whose_updates_are_its_own_have_no_rate(hook, rows):
    losses = train(hook, variable(), 5)
    hook.close()
    assert [row.get("series/loss") for row in rows("steps")] == losses
    assert not any("series/learning_rate" in row for row in rows("steps"))
    assert ["series/seconds" in row for row in rows("steps")] == [False] + [True] * 4


def test_a_loss_that_a_function_does_not_return_is_known_where_it_is_saved(hook, rows):
    w = variable()
    before = float(tf.reduce_mean((w - 3.0) ** 2))
    train(hook, w, 4, wrap=tf.function, returns=False)
    hook.close()
    assert [row["step"] for row in rows("steps")] == [0, 1, 2, 3]
    assert [row.get("series/loss") for row in rows("steps")] == [pytest.approx(before), None, None, None]


def test_a_row_is_there_as_soon_as_the_next_step_has_begun(hook, rows):
    w = variable()
    for step in range(4):
        train(hook, w, 1)
        assert [row["step"] for row in rows("steps")] == [*range(step)]
    hook.close()
    assert [row["step"] for row in rows("steps")] == [*range(4)]


def test_a_loss_with_several_elements_is_their_mean_and_one_that_is_not_finite_is_told(hook, rows):
    w = variable()
    for factor in ([1.0, 3.0], [math.nan, 1.0], [math.inf, 1.0]):
        with tape_of(hook) as tape:
            loss = factor * (w * 0.0 + 1.0)
        tape.gradient(loss, w)
    hook.close()
    assert [row["series/loss"] for row in rows("steps")] == [2.0, pytest.approx(math.nan, nan_ok=True), math.inf]


def test_a_loss_that_would_have_to_be_waited_for_is_left_out(hook, rows):
    w = variable()
    train(hook, w, 1)
    tf.config.experimental.set_synchronous_execution(False)
    try:
        train(hook, w, 1)
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    train(hook, w, 1)
    hook.close()
    assert ["series/loss" in row for row in rows("steps")] == [True, False, True]


@pytest.mark.parametrize("way", ["eager", "function"])
def test_losses_are_those_before_scaling_and_updates_that_are_skipped_are_told(ran, way):
    losses, table, _ = ran(SCALED, way)
    assert table["series/loss"].tolist() == losses
    assert table["series/loss_scale"].tolist() == [1024, 1024, 512, 512]
    assert table["series/skipped"].tolist() == [0, 1, 0, 0]
    assert table["series/learning_rate"].tolist() == [0.25] * 4


def test_rates_of_schedules_are_known_in_eager_steps(hook, rows):
    w = variable()
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.5, 0.25])
    optimizer = keras.optimizers.SGD(schedule)
    for _ in range(3):
        with tape_of(hook) as tape:
            loss = tf.reduce_sum(w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    hook.close()
    assert [row["series/learning_rate"] for row in rows("steps")] == [0.5, 0.25, 0.25]


def test_rates_that_the_program_sets_are_known(hook, rows):
    w, optimizer = variable(), keras.optimizers.SGD(0.5)
    for number in range(3):
        optimizer.learning_rate = 0.5 / 2**number
        with tape_of(hook) as tape:
            loss = tf.reduce_sum(w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    hook.close()
    assert [row["series/learning_rate"] for row in rows("steps")] == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("wrap", [lambda step: step, tf.function], ids=["eager", "function"])
def test_short_steps_rest_and_the_others_have_all_their_numbers(hook, rows, early_rests, wrap):
    losses = train(hook, variable(), 400, 0.0, wrap)
    hook.close()
    found = rows("steps")
    assert [row["step"] for row in found[:30]] == [*range(30)]
    assert len(found) < 400
    assert [row["series/loss"] for row in found] == [losses[row["step"]] for row in found]
    assert all("series/seconds" in row for row in found[1:])


def test_steps_of_fit_between_have_rows_of_their_own(hook, rows):
    w = variable()
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    losses = train(hook, w, 2)
    model.fit(np.ones((6, 2)), np.ones((6, 1)), batch_size=2, verbose=0)
    losses += train(hook, w, 2)
    hook.close()
    found = {row["step"]: row for row in rows("steps")}
    assert [*sorted(found)] == [*range(7)]
    assert [found[step]["series/loss"] for step in (0, 1, 5, 6)] == losses
    assert all("series/loss" in row for row in found.values())


def test_a_failure_costs_the_series_alone(out, hook, monkeypatch, capfd):
    monkeypatch.setattr(guard, "strict", False)
    monkeypatch.setattr(TapeRows, "_write", lambda *_: 1 / 0)
    w = variable()
    train(hook, w, 6)
    hook.close()
    trial = create_trial(out)
    assert trial.tensor("loss").steps() == [0]
    assert "steps" not in trial.series()
    assert "rows of the series" in capfd.readouterr().err


def test_a_variable_and_a_loss_go_with_the_program(hook):
    w = variable()
    with tape_of(hook) as tape:
        loss = tf.reduce_sum(w)
    tape.gradient(loss, w)
    references = weakref.ref(w), weakref.ref(loss)
    del w, loss, tape
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    hook.close()
