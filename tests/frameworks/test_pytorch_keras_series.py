"""The series of Keras on PyTorch: a row for each training step, saved or not, and a training none the wiser."""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import version

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("keras") is None or int(version("keras").split(".")[0]) < 3:
    pytest.skip("there is no Keras 3", allow_module_level=True)

from harness.compare import assert_untouched, run_both
from harness.killed import assert_series_survives
from harness.series import assert_losses_are_those_saved

from smd_agent.framework.keras.tracked_loss import TrackedLoss
from smd_agent.pytorch.keras_fit.scalar_variables import TorchVariables

WARM = ("torch", "keras")

TORCH = {"KERAS_BACKEND": "torch", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
EACH = {"HookParameters": {"save_interval": 1}, "CollectionConfigurations": [{"CollectionName": "losses"}]}
SELDOM = {"HookParameters": {"save_interval": 1000}}

PARTS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import hashlib, json, random, sys
import numpy as np
import torch
import keras
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
def tell_all(model):
    weights = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
    print(weights, random.random(), np.random.rand(), float(torch.rand(())))
"""
FITTED = f"""{PARTS}
model = net()
print(json.dumps(fit(model, epochs=2, validation_data=(x[:20], y[:20]))))
model.train_on_batch(x[:8], y[:8])
fit(model, sample_weight=np.linspace(0, 1, 70))
model.evaluate(x, y, verbose=0)
other = net(optimizer=keras.optimizers.Adam(0.02))
fit(other)
fit(model, epochs=2)
tell_all(model)
"""
RATES = f"""{PARTS}
rates = keras.callbacks.LearningRateScheduler(lambda epoch, _: 0.5 / 2**epoch)
model = net()
fit(model, epochs=2, callbacks=[rates])
tell_all(model)
"""
SCHEDULED = f"""{PARTS}
model = net(optimizer=keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)))
fit(model)
tell_all(model)
"""
SCALED = f"""{PARTS}
model = net(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=2.0**10))
y[16:32] = np.inf
model.fit(x[:48], y[:48], batch_size=16, shuffle=False, verbose=0)
tell_all(model)
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
        self.zero_grad()
        loss = torch.mean((y - self(x, training=True)) ** 2)
        loss.backward()
        variables = self.trainable_weights
        with torch.no_grad():
            self.optimizer.apply([v.value.grad for v in variables], variables)
        self.mean.update_state(loss)
        return {{"loss": self.mean.result()}}
model = Own()
model.compile(optimizer=keras.optimizers.SGD(0.01))
fit(model, epochs=2)
tell_all(model)
"""
# What watches modes of functions sees nothing of ours.
MODES = f"""{PARTS}
from torch.overrides import TorchFunctionMode
seen = []
class Seen(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {{}}))
model = net()
fit(model)
with Seen():
    fit(model)
print(len(seen))
tell_all(model)
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


@pytest.fixture
def ran(runner):
    """Runs a program with the agent and without; gives both and the table of the series."""

    def run(script, config=EACH):
        both = run_both(runner, runner.write(script), config=config, strict=True, **TORCH)
        assert_untouched(both, stderr=False)
        return both, both.trial.series().get("steps")

    return run


def assert_losses_are_those_printed(both, table):
    """The losses of the first epochs have the means that the program prints."""
    for number, mean in enumerate(json.loads(both.plain.stdout.splitlines()[0])["loss"]):
        losses = table["series/loss"][number * 5 : number * 5 + 5]
        assert np.average(losses, weights=[16, 16, 16, 16, 6]) == pytest.approx(mean, rel=1e-6)


def test_each_training_step_of_fit_and_train_on_batch_has_a_row(ran):
    both, table = ran(FITTED)
    assert len(table.steps) == 10 + 1 + 5 + 5 + 10
    assert_losses_are_those_saved(both, table)
    rates = table["series/learning_rate"].tolist()
    assert rates == [pytest.approx(0.01)] * 16 + [pytest.approx(0.02)] * 5 + [pytest.approx(0.01)] * 10
    assert np.isnan(table["series/seconds"][0])
    assert (table["series/seconds"][1:] > 0).all()
    assert_losses_are_those_printed(both, table)


def test_steps_that_are_not_saved_have_their_losses(ran):
    both, table = ran(FITTED, SELDOM)
    assert len(table.steps) == len(table.mode_steps) == 31
    assert table.is_there("series/loss").all()
    assert table.is_there("series/learning_rate").all()
    assert_losses_are_those_printed(both, table)


def test_it_is_switched_off_by_a_key(ran):
    _, table = ran(FITTED, {"HookParameters": {"series": False}})
    assert table is None


def test_rates_that_callbacks_set_are_known(ran):
    _, table = ran(RATES, SELDOM)
    assert table["series/learning_rate"].tolist() == [0.5] * 5 + [0.25] * 5


def test_those_of_schedules_are_left_out(ran):
    _, table = ran(SCHEDULED, SELDOM)
    assert len(table.steps) == 5
    assert not table.is_there("series/learning_rate").any()
    assert table.is_there("series/loss").all()


def test_a_loss_scale_and_skipped_updates_are_known(ran):
    _, table = ran(SCALED, SELDOM)
    assert table["series/loss_scale"].tolist() == [1024, 1024, 512]
    assert table["series/skipped"].tolist() == [0, 1, 0]
    assert table["series/learning_rate"].tolist() == [0.25] * 3
    # The sum has become infinite with the second one: what the third one adds cannot be told.
    assert table["series/loss"][1] == np.inf
    assert table.is_there("series/loss").tolist() == [True, True, False]


def test_a_step_of_the_programs_is_known_by_its_own_mean(ran):
    both, table = ran(OWN)
    saved = both.trial.tensor("loss")
    losses = table["series/loss"]
    means = [losses[step // 5 * 5 : step + 1].mean() for step in range(10)]
    np.testing.assert_allclose(means, [float(saved.value(step)) for step in range(10)], rtol=1e-5)


def test_modes_of_the_programs_see_nothing_of_it(ran):
    _, table = ran(MODES, SELDOM)
    assert table.is_there("series/loss").all()


def test_steps_that_a_kill_ends_are_there(tmp_path):
    assert_series_survives(tmp_path, KILLED, relative=1e-6, times=2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_rounding_of_a_sum_is_known(dtype):
    variables = TorchVariables()

    class Variable:
        def __init__(self, value):
            self._value = torch.nn.Parameter(torch.tensor(value, dtype=dtype), requires_grad=False)

    total, count = Variable(0.0), Variable(0.0)
    found = [variables.plain(one) for one in (total, count)]
    tracked = TrackedLoss(*found, variables)
    tracked.begin(False)
    total._value.fill_(8.0)
    count._value.fill_(4.0)
    assert tracked.end(*variables.reader(found)()) == 2.0
    assert variables.rounding(found[0]) == torch.finfo(dtype).eps / 2


@pytest.mark.parametrize(
    "value", [torch.ones(2), torch.tensor(1), torch.empty((), device="meta"), torch.tensor(1.0).to_sparse(), 1.0, None]
)
def test_what_is_no_number_in_main_memory_is_not_read(value):
    class Variable:
        _value = value

    assert TorchVariables().plain(Variable()) is None
