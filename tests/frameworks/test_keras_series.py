"""The series of Keras on TensorFlow: a row for each training step, saved or not, and a training none the wiser."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.compare import assert_untouched, run_both
from harness.keras_ways import QUIET
from harness.killed import assert_series_survives
from harness.series import assert_losses_are_those_saved

import smd_agent.tensorflow as smd
from smd_agent import guard
from smd_agent.analysis.trial import create_trial
from smd_agent.core.budget import Rests
from smd_agent.formats.series import ABSENT
from smd_agent.framework.keras.tracked_loss import TrackedLoss
from smd_agent.tensorflow.scalar_variables import TensorflowVariables

keras = tf.keras
IS_KERAS_3 = hasattr(keras, "__version__") and keras.__version__.startswith("3")

pytestmark = [
    # Keras 3 makes a number out of a variable in a way that NumPy warns of.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
]

SELDOM = smd.SaveConfig(save_interval=1000)
EACH = {"HookParameters": {"save_interval": 1}, "CollectionConfigurations": [{"CollectionName": "losses"}]}

PARTS = """
import hashlib, json, random
import numpy as np
import tensorflow as tf
keras = tf.keras
keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
x = rng.normal(size=(70, 4)).astype("float32")
y = (x.sum(axis=1, keepdims=True) ** 2).astype("float32")
def net(**settings):
    layers = [keras.layers.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.1)]
    model = keras.Sequential([*layers, keras.layers.Dense(1, kernel_regularizer=keras.regularizers.L2(0.01))])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.01), "loss": "mse", **settings})
    return model
def fit(model, **settings):
    return model.fit(x, y, **{"batch_size": 16, "verbose": 0, **settings}).history
def tell(model):
    weights = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
    print(weights, random.random(), np.random.rand(), float(tf.random.uniform(())))
"""
FITTED = f"""{PARTS}
model = net()
print(json.dumps(fit(model, epochs=2, validation_data=(x[:20], y[:20]))))
model.train_on_batch(x[:8], y[:8])
fit(model, sample_weight=np.linspace(0, 1, 70))
model.evaluate(x, y, verbose=0)
fit(model, epochs=2)
tell(model)
"""
WAYS = {"xla": {"jit_compile": True}, "eager": {"run_eagerly": True}}
COMPILED = f"""{PARTS}
import sys
model = net(**json.loads(sys.argv[1]))
fit(model, epochs=2, validation_data=(x[:20], y[:20]))
tell(model)
"""
EXECUTIONS = f"""{PARTS}
model = net(steps_per_execution=2)
print(json.dumps(fit(model, epochs=2)))
tell(model)
"""
RAISED = f"""{PARTS}
class Raise(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
            raise ValueError("of the program")
model = net()
try:
    fit(model, callbacks=[Raise()])
except ValueError as error:
    print(error)
fit(model)
tell(model)
"""
OWN = f"""{PARTS}
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.mean = keras.metrics.Mean(name="loss")
    def call(self, inputs):
        return self.dense(inputs)
    @property
    def metrics(self):
        print("asked")
        return [self.mean]
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self(x, training=True)) ** 2)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.mean.update_state(loss)
        return {{"loss": self.mean.result()}}
model = Own()
model.compile(optimizer=keras.optimizers.SGD(0.01))
fit(model, epochs=2)
tell(model)
"""
KILLED = f"""{PARTS}
model = net()
class Tell(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
    def on_train_batch_end(self, batch, logs=None):
        tell(self.epoch, logs["loss"])
# Of one batch the running mean is the loss itself.
model.fit(x[:16], y[:16], batch_size=16, epochs=100000, verbose=0, callbacks=[Tell()])
"""
# As the script of a test has one of that name.
KILLED = KILLED.replace("def tell(model)", "def tell_all(model)")


@pytest.fixture
def ran(runner):
    """Runs a program with every loss saved, and without the agent; gives both and the table of the series."""

    def run(script, *words, config=EACH, name="run"):
        both = run_both(runner, runner.write(script), *words, config=config, name=name, strict=True, **QUIET)
        assert_untouched(both, stderr=False)
        return both, both.trial.series().get("steps")

    return run


def batches():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(48, 4)).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def net(**settings):
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.01), "loss": "mse", **settings})
    return model


def test_each_training_step_of_fit_and_train_on_batch_has_a_row(ran):
    both, table = ran(FITTED)
    assert len(table.steps) == 10 + 1 + 5 + 10
    assert_losses_are_those_saved(both, table)
    assert table["series/learning_rate"].tolist() == [pytest.approx(0.01)] * 26
    assert np.isnan(table["series/seconds"][0])
    assert (table["series/seconds"][1:] > 0).all()
    history = json.loads(both.plain.stdout.splitlines()[0])["loss"]
    sizes = [16, 16, 16, 16, 6]
    for number, mean in enumerate(history):
        losses = table["series/loss"][number * 5 : number * 5 + 5]
        assert np.average(losses, weights=sizes) == pytest.approx(mean, rel=1e-6)


def test_steps_that_are_not_saved_have_the_same_rows(ran):
    _, table = ran(FITTED, config={"HookParameters": {"save_interval": 7}})
    assert len(table.steps) == 26
    _, of_each = ran(FITTED, name="of_each")
    for name in ("series/loss", "series/learning_rate"):
        assert table[name].tolist() == of_each[name].tolist()
    assert table.steps.tolist() == of_each.steps.tolist()


def test_it_is_switched_off_by_a_key(ran):
    _, table = ran(FITTED, config={"HookParameters": {"series": False}})
    assert table is None


@pytest.mark.parametrize("way", WAYS)
def test_compiled_and_eager_steps_have_their_losses(ran, way):
    both, table = ran(COMPILED, json.dumps(WAYS[way]))
    assert_losses_are_those_saved(both, table)


def test_of_executions_of_several_steps_the_mean_is_known(ran):
    both, table = ran(EXECUTIONS, config={"HookParameters": {"save_interval": 1000}})
    history = json.loads(both.plain.stdout.splitlines()[0])["loss"]
    # The first execution is saved, so that its steps run one by one, and so does the last one, which has one step.
    is_alone = table.is_there("series/loss")
    executions = table["series/execution_loss"]
    assert (is_alone != table.is_there("series/execution_loss")).all()
    assert (table.is_there("series/seconds")[1:] == is_alone[1:]).all()
    for steps, mean in zip((range(5), range(5, 10)), history, strict=True):
        losses = [
            (table["series/loss"][row], 6 if step % 5 == 4 else 16)
            if is_alone[row]
            else (executions[row], 32 if IS_KERAS_3 or step % 5 < 4 else 6)
            for row, step in enumerate(table.steps.tolist())
            if step in steps
        ]
        values, sizes = zip(*losses, strict=True)
        assert sum(sizes) == 70
        assert np.average(values, weights=sizes) == pytest.approx(mean, rel=1e-6)


def test_an_exception_in_a_callback_leaves_the_rows_of_the_steps_before(ran):
    both, table = ran(RAISED)
    assert table.steps.tolist() == [*range(3 + 5)]
    assert_losses_are_those_saved(both, table)


def test_a_step_of_the_programs_is_known_by_its_own_mean(ran):
    both, table = ran(OWN)
    saved = both.trial.tensor("loss")
    losses = table["series/loss"]
    means = [losses[step // 5 * 5 : step + 1].mean() for step in range(10)]
    np.testing.assert_allclose(means, [float(saved.value(step)) for step in range(10)], rtol=1e-5)


def test_steps_that_a_kill_ends_are_there(tmp_path):
    assert_series_survives(tmp_path, KILLED, relative=1e-6, times=2)


def test_a_loss_scale_and_skipped_updates_are_known(out, rows):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    if IS_KERAS_3:
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**10)
    else:
        optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**10)
    y[16:32] = np.inf
    net(optimizer=optimizer).fit(x, y, batch_size=16, shuffle=False, verbose=0)
    hook.close()
    found = rows("steps")
    assert [row["series/loss_scale"] for row in found] == [1024, 1024, 512]
    assert [row["series/skipped"] for row in found] == [0, 1, 0]
    assert [row["series/learning_rate"] for row in found] == [0.25] * 3
    # The sum has become infinite with the second one: what the third one adds cannot be told.
    assert [row.get("series/loss") for row in found][1:] == [np.inf, None]


def test_rates_that_callbacks_set_are_known_and_those_of_schedules_where_a_variable_has_them(out, rows):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, _: 0.5 / 2**epoch)
    net().fit(x, y, batch_size=24, epochs=2, verbose=0, callbacks=[rates])
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.5, 0.25])
    net(optimizer=keras.optimizers.SGD(schedule)).fit(x, y, batch_size=16, verbose=0)
    hook.close()
    found = [row.get("series/learning_rate") for row in rows("steps")]
    assert found[:4] == [0.5, 0.5, 0.25, 0.25]
    assert found[4:] == ([None] * 3 if IS_KERAS_3 else [0.5, 0.25, 0.25])


def test_what_was_reset_or_evaluated_between_steps_is_not_taken_for_theirs(out, rows):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    model, other = net(), net()
    expected = []
    for size, between in (
        (4, model.reset_metrics),
        (8, lambda: model.evaluate(x, y, verbose=0)),
        (16, bool),
        (24, bool),
    ):
        expected.append(float(np.mean((model(x[:size]) - y[:size]) ** 2)))
        model.train_on_batch(x[:size], y[:size])
        expected.append(float(np.mean((other(x[:size]) - y[:size]) ** 2)))
        other.train_on_batch(x[:size], y[:size])
        between()
    hook.close()
    np.testing.assert_allclose([row["series/loss"] for row in rows("steps")], expected, rtol=1e-5)


def test_a_mean_is_looked_at_before_a_step_where_a_reset_would_not_show():
    total, count = (tf.Variable(0.0, trainable=False) for _ in range(2))
    tracked, looks = TrackedLoss(total, count, TensorflowVariables()), []
    read, tracked._read_total = tracked._read_total, lambda: looks.append(1) or read()

    def loss_of(loss, rows=16, follows=True):
        tracked.begin(follows)
        total.assign_add(loss * rows)
        count.assign_add(rows)
        return tracked.end(float(total.numpy()), float(count.numpy()))

    def begin_anew():
        total.assign(0.0)
        count.assign(0.0)

    def found(*losses, **more):
        looks.clear()
        assert [loss_of(loss, **more) for loss in losses] == [*losses]
        return len(looks)

    assert found(*range(20)) == 8
    assert found(1.0, rows=6) == 0
    begin_anew()
    # The end of the batch shows that it was reset; then there are few rows again.
    assert found(*range(10, 20)) == 7
    total.assign_add(48.0)
    count.assign_add(16.0)
    assert loss_of(2.0) is ABSENT
    assert found(*range(1, 11)) == 8
    assert found(3.0, follows=False) == 1


def test_a_strategy_of_several_replicas_has_no_loss_that_is_plain(out, rows):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = net()
    model.fit(x, y, verbose=0)
    hook.close()
    assert [row["step"] for row in rows("steps")] == [0, 1]
    assert not any("series/loss" in row for row in rows("steps"))


def test_a_loss_that_the_rounding_of_the_sum_hides_is_not_told():
    total, count = (tf.Variable(0.0, trainable=False) for _ in range(2))
    tracked = TrackedLoss(total, count, TensorflowVariables())

    def loss_of(loss, rows=16):
        tracked.begin(False)
        total.assign_add(loss * rows)
        count.assign_add(rows)
        return tracked.end(float(total.numpy()), float(count.numpy()))

    def begin_anew(rows=0.0):
        total.assign(0.0)
        count.assign(rows)

    assert loss_of(1e6) == 1e6
    assert loss_of(100.0) == pytest.approx(100.0, rel=1e-2)
    assert loss_of(0.5) is ABSENT
    begin_anew()
    assert loss_of(0.5) == 0.5
    assert math.isnan(loss_of(np.nan))
    assert loss_of(0.5) is ABSENT
    begin_anew(2.0**24)
    assert loss_of(0.5) is ABSENT


def test_a_failure_costs_the_series_alone(out, monkeypatch, capfd):
    monkeypatch.setattr(guard, "strict", False)
    monkeypatch.setattr(TrackedLoss, "end", lambda *_: 1 / 0)
    x, y = batches()
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1))
    net().fit(x, y, batch_size=8, verbose=0)
    hook.close()
    trial = create_trial(out)
    assert trial.tensor("loss").steps() == [*range(6)]
    assert "steps" not in trial.series()
    assert "rows of the series" in capfd.readouterr().err


def test_each_model_has_its_losses_and_an_evaluation_between_batches_is_none(out, rows):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    model, expected = net(), []
    # Not by chance: small losses come late.
    model.set_weights([np.zeros((4, 1)), np.zeros(1)])

    class Look(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            part = slice(batch, batch + 1)
            expected.append(float(np.mean((model(x[part]) - y[part]) ** 2)))

        def on_train_batch_end(self, batch, logs=None):
            if batch in {12, 30}:
                model.evaluate(x[:13], y[:13], verbose=0, batch_size=1)
            elif batch == 20:
                model.reset_metrics()

    model.fit(x, y, batch_size=1, epochs=3, shuffle=False, verbose=0, callbacks=[Look()])
    hook.close()
    found = [row.get("series/loss") for row in rows("steps")]
    pairs = [(loss, wanted) for loss, wanted in zip(found, expected, strict=True) if wanted > 0.1]
    assert len(pairs) > 50
    assert all(loss == pytest.approx(wanted, rel=1e-3) for loss, wanted in pairs), pairs


def test_short_steps_rest_and_are_looked_at_again(out, rows, monkeypatch):
    x, y = batches()
    hook = smd.KerasHook(out, save_config=SELDOM)
    model = net()
    rests = iter([0, 0, 3, 0, 0, 0, 0])
    monkeypatch.setattr(Rests, "after", lambda *_: next(rests))
    expected = []
    for _ in range(10):
        expected.append(float(np.mean((model(x) - y) ** 2)))
        model.train_on_batch(x, y)
    hook.close()
    found = rows("steps")
    assert [row["step"] for row in found] == [0, 1, 2, 3, 7, 8, 9]
    np.testing.assert_allclose(
        [row["series/loss"] for row in found], [expected[row["step"]] for row in found], rtol=1e-5
    )
