"""Updates, settings of optimizers, digests of inputs, and what is known of variables, of fit, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.framework import input_digests
from smd_agent.framework import training_facts as facts
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.tensorflow.fact_adapters import picked

keras = tf.keras
layers = keras.layers
KERAS_3 = str(getattr(keras, "__version__", "2")).startswith("3")

pytestmark = [
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning"),
]

TRAIN = smd.modes.TRAIN
COLLECTIONS = ["updates", "optimizer", "input_digests", "parameters"]
WAYS = {"compiled": {}, "eager": {"run_eagerly": True}, "xla": {"jit_compile": True}, "windows": {}}


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of the program's own."""

    def __call__(self, step):
        return 0.1 / (tf.cast(step, tf.float32) + 1.0)

    def get_config(self):
        return {}


class Rates(keras.callbacks.Callback):
    """Sets another learning rate before each epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 0.5 / (epoch + 1)


def arrays(model):
    return [(variable.value if KERAS_3 else variable).numpy() for variable in model.weights]


class Seen(keras.callbacks.Callback):
    """The variables before and after each step, as NumPy has them."""

    def __init__(self):
        super().__init__()
        self.before, self.after = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.before.append(arrays(self.model))

    def on_train_batch_end(self, batch, logs=None):
        self.after.append(arrays(self.model))


def hooked(out, collections=COLLECTIONS, every=1):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=every), include_collections=collections)


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def small_model(**options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            layers.Input((4,)),
            layers.Dense(5, name="first", activation="relu"),
            layers.Dense(3, name="frozen", trainable=False),
            layers.BatchNormalization(name="norm"),
            layers.Dense(1, name="last"),
        ]
    )
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1, momentum=0.9), "loss": "mse", **options})
    return model


X, Y = np.random.RandomState(0).rand(24, 4).astype("f4"), np.random.RandomState(1).rand(24, 1).astype("f4")


def fit(model, *callbacks, x=X, y=Y, **options):
    return model.fit(
        x, y, **{"batch_size": 4, "shuffle": False, "verbose": 0, "callbacks": [*callbacks], "epochs": 1, **options}
    )


def told_of_variables(trial, step):
    (name,) = trial.tensor_names(collection="parameters")
    return json.loads(str(trial.tensor(name).value(step, mode=TRAIN)[0]))


def digest_of(trial):
    (name,) = trial.tensor_names(collection="input_digests")
    return name


def names_of(model, trial):
    """Where the variables of a model are stored, in the order of its weights."""
    told = told_of_variables(trial, 0)
    assert len(told) == len(model.weights)
    return [*told]


def value(trial, name, step):
    return trial.tensor(name).value(step, mode=TRAIN).item()


def values(trial, name):
    return [value(trial, name, step) for step in trial.tensor(name).steps(mode=TRAIN)]


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "AdamW": lambda: keras.optimizers.AdamW(1e-2, weight_decay=0.1),
}
if not KERAS_3:
    OPTIMIZERS["legacy"] = lambda: keras.optimizers.legacy.Adam(1e-2)


@pytest.mark.parametrize("way", ["compiled", "eager", "xla"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_updates_are_what_the_optimizer_has_changed(out, kind, way):
    hook, seen = hooked(out), Seen()
    model = small_model(optimizer=OPTIMIZERS[kind](), **WAYS[way])
    fit(model, seen)
    trial = trial_of(hook)
    trained = {id(variable) for variable in model.trainable_variables}
    assert 0 < len(trained) < len(model.weights)
    for place, (name, variable) in enumerate(zip(names_of(model, trial), model.weights, strict=True)):
        if id(variable) not in trained:
            assert f"update/{name}" not in trial.tensor_names()
            continue
        assert trial.tensor(f"update/{name}").steps(mode=TRAIN) == [*range(6)]
        for step in range(6):
            before, after = (found[step][place].astype("f8") for found in (seen.before, seen.after))
            move, length = np.linalg.norm(after - before), np.linalg.norm(before)
            assert value(trial, f"update/{name}", step) == pytest.approx(move, rel=1e-5)
            ratio = move / length if length else float(move > 0)
            assert value(trial, f"update_ratio/{name}", step) == pytest.approx(ratio, rel=1e-5)
    assert trial.tensor_names(collection="weights") == trial.tensor_names(collection="biases") == []


def test_executions_of_several_steps_have_the_facts_of_each(out):
    seen = Seen()
    fit(small_model(), seen)
    hook = hooked(out)
    model = small_model(steps_per_execution=3)
    fit(model)
    trial = trial_of(hook)
    for place, (name, variable) in enumerate(zip(names_of(model, trial), model.weights, strict=True)):
        if variable is model.trainable_variables[0]:
            moves = [np.linalg.norm(a[place] - b[place]) for a, b in zip(seen.after, seen.before, strict=True)]
            assert values(trial, f"update/{name}") == pytest.approx(moves, rel=1e-5)
    assert len({*values(trial, digest_of(trial))}) == 6


def test_of_a_large_variable_a_part_stands_for_all(out):
    hook, seen = hooked(out), Seen()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([layers.Input((600,)), layers.Dense(500, use_bias=False)])
    assert model.count_params() > 4 * LOOKED_AT
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    fit(model, seen, x=np.random.RandomState(0).rand(8, 600).astype("f4"), y=np.zeros((8, 500), "f4"), batch_size=8)
    trial = trial_of(hook)
    ((before,), (after,)) = seen.before[0], seen.after[0]
    (name,) = names_of(model, trial)
    assert value(trial, f"update/{name}", 0) == pytest.approx(np.linalg.norm(after - before), rel=0.02)
    ratio = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert value(trial, f"update_ratio/{name}", 0) == pytest.approx(ratio, rel=0.02)
    # Picked on an accelerator, it is the same part.
    np.testing.assert_array_equal(picked(tf.constant(after), after.size), facts.sample(after.reshape(-1)))


@pytest.mark.parametrize("way", ["compiled", "eager", "xla", "windows"])
def test_settings_are_those_that_the_update_used(out, way):
    hook = hooked(out)
    decay = keras.optimizers.schedules.ExponentialDecay(0.2, 2, 0.5)
    model = small_model(optimizer=keras.optimizers.AdamW(decay, weight_decay=0.03, beta_1=0.8), **WAYS[way])
    if way == "windows":
        model.compile(model.optimizer, "mse", steps_per_execution=2)
    fit(model)
    trial = trial_of(hook)
    title = next(name for name in trial.tensor_names(collection="optimizer") if name.endswith("/lr")).split("/")[1]
    assert values(trial, f"optimizer/{title}/lr") == pytest.approx([0.2 * 0.5 ** (step / 2) for step in range(6)])
    for name, expected in (("weight_decay", 0.03), ("beta_1", 0.8), ("beta_2", 0.999), ("eps", 1e-7)):
        assert values(trial, f"optimizer/{title}/{name}") == pytest.approx([expected] * 6), name


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_a_schedule_of_the_programs_own_and_a_rate_that_a_callback_sets(out, way):
    hook = hooked(out)
    model = small_model(optimizer=keras.optimizers.SGD(Schedule(), momentum=0.7), **WAYS[way])
    fit(model)
    # The callback sets it before each epoch.
    model.compile(keras.optimizers.RMSprop(0.5), "mse", **WAYS[way])
    fit(model, Rates(), epochs=2)
    trial = trial_of(hook)
    rates = {name: values(trial, name) for name in trial.tensor_names(regex="^optimizer/.*/lr$")}
    (own,) = [found for name, found in rates.items() if "SGD" in name]
    (other,) = [found for name, found in rates.items() if "RMSprop" in name]
    assert own == pytest.approx([0.1 / (step + 1) for step in range(6)])
    assert other == pytest.approx([0.5] * 6 + [0.25] * 6)
    (momentum,) = trial.tensor_names(regex="^optimizer/SGD.*/momentum$")
    assert values(trial, momentum) == pytest.approx([0.7] * 6)


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_the_scale_of_a_loss_is_the_one_that_the_step_used(out, way):
    hook = hooked(out)
    wrapper = keras.optimizers.LossScaleOptimizer if KERAS_3 else keras.mixed_precision.LossScaleOptimizer
    optimizer = wrapper(keras.optimizers.SGD(0.1), initial_scale=64.0, dynamic_growth_steps=2)
    model = small_model(optimizer=optimizer, **WAYS[way])
    fit(model)
    trial = trial_of(hook)
    (scale,) = trial.tensor_names(regex="^optimizer/.*/loss_scale$")
    assert values(trial, scale) == [64.0, 64.0, 128.0, 128.0, 256.0, 256.0]
    assert values(trial, scale.replace("/loss_scale", "/skipped")) == [0] * 6
    (rate,) = trial.tensor_names(regex="^optimizer/.*/lr$")
    assert "SGD" in rate
    assert values(trial, rate) == pytest.approx([0.1] * 6)


@pytest.mark.parametrize("way", WAYS)
def test_updates_that_are_left_out_as_gradients_overflow(out, way):
    hook = hooked(out)
    wrapper = keras.optimizers.LossScaleOptimizer if KERAS_3 else keras.mixed_precision.LossScaleOptimizer
    optimizer = wrapper(keras.optimizers.SGD(1e-5), initial_scale=2.0**124)
    model = small_model(optimizer=optimizer, **WAYS[way])
    fit(model, y=5 * (Y + 1))
    trial = trial_of(hook)
    (name,) = trial.tensor_names(regex="^optimizer/.*/skipped$")
    moved = np.sum([values(trial, update) for update in trial.tensor_names(regex="^update/")], 0)
    assert values(trial, name) == [float(not move) for move in moved]
    assert {*values(trial, name)} == {0, 1}


@pytest.mark.parametrize("way", ["compiled", "eager", "xla"])
def test_batches_that_come_again_have_the_same_digest(out, way):
    hook = hooked(out)
    model = small_model(**WAYS[way])
    x = X.copy()
    # The second batch is the first one backwards, the fourth the third but for one bit, the fifth the first again.
    x[4:8], x[12:16], x[16:20] = x[3::-1], x[8:12], x[0:4]
    x[13, 2] = np.nextafter(x[13, 2], np.float32(9))
    fit(model, x=x)
    model.evaluate(x, Y, batch_size=4, verbose=0)
    trial = trial_of(hook)
    name = digest_of(trial)
    found = values(trial, name)
    assert found[4] == found[0]
    assert len({*found}) == 5
    assert [trial.tensor(name).value(step, mode=smd.modes.EVAL).item() for step in range(6)] == found
    parts = [input_digests.words_of(batch) for batch in x.reshape(6, 4, 4)]
    assert found == [input_digests.digest([(words, "float32", (4, 4))], np).item() for words in parts]
    assert trial.tensor(name).value(0, mode=TRAIN).dtype == np.int64


def test_inputs_of_several_kinds_have_one_digest(out):
    hook = hooked(out)
    keras.utils.set_random_seed(0)
    inputs = {"a": layers.Input((2,), name="a"), "b": layers.Input((1,), dtype="int32", name="b")}
    joined = layers.Concatenate()([inputs["a"], layers.Flatten()(layers.Embedding(5, 2)(inputs["b"]))])
    model = keras.Model(inputs, layers.Dense(1)(joined))
    model.compile("sgd", "mse")
    b = np.array([[0], [1], [2], [3]] * 3, "i4")
    b[8] = 4
    fit(model, x={"a": np.tile(X[:4, :2], (3, 1)), "b": b}, y=Y[:12])
    trial = trial_of(hook)
    found = values(trial, digest_of(trial))
    assert found[0] == found[1] != found[2]


class Net(keras.Model):
    """Has an optimizer for some of its variables, and another one for one of them."""

    def __init__(self):
        super().__init__(name="net")
        self.backbone = layers.Dense(4, use_bias=False, trainable=False, name="backbone")
        self.head, self.late, self.unused = (
            layers.Dense(4, use_bias=False, name=name) for name in ("head", "late", "unused")
        )
        self.other, self.second = layers.Dense(4, use_bias=False, name="other"), keras.optimizers.SGD(0.1)

    def call(self, x):
        return self.other(self.head(self.late(self.backbone(x))))

    def train_step(self, data):
        x, _ = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(self(x, training=True) ** 2)
        first = [*self.head.trainable_variables, *self.unused.trainable_variables]
        second = self.other.trainable_variables
        gradients = tape.gradient(loss, [*first, *second])
        self.optimizer.apply_gradients(zip(gradients[:2], first, strict=True))
        self.second.apply_gradients(zip(gradients[2:], second, strict=True))
        return {"loss": loss}


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_each_variable_is_trained_frozen_forgotten_or_not_reached(out, way):
    hook = hooked(out)
    model = Net()
    model.unused.build((None, 4))
    model(X[:1])
    model.compile(keras.optimizers.Adam(1e-3), **WAYS[way])
    fit(model)
    trial = trial_of(hook)
    # It is told again only when something has changed.
    (name,) = trial.tensor_names(collection="parameters")
    assert trial.tensor(name).steps(mode=TRAIN) == [0]
    told = [*zip(told_of_variables(trial, 0).items(), model.weights, strict=True)]
    owners = {id(layer.weights[0]): layer.name for layer in model.layers}
    names = {name: owners[id(variable)] for (name, _), variable in told}
    found = {names[name]: (fact["requires_grad"], fact["optimizer"], fact["gradient"]) for (name, fact), _ in told}
    first, second = found["head"][1], found["other"][1]
    assert "Adam" in first
    assert "SGD" in second
    assert found == {
        "backbone": (False, None, False),
        "late": (True, None, False),
        "head": (True, first, True),
        "unused": (True, first, False),
        "other": (True, second, True),
    }
    moved = {names[name.removeprefix("update/")] for name in trial.tensor_names(regex="^update/")}
    assert moved == {"head", "unused", "other"}
    assert {name.split("/")[1] for name in trial.tensor_names(collection="optimizer")} == {first, second}


def test_what_a_run_says_again_when_it_has_changed(out):
    hook = hooked(out)
    model = small_model()
    fit(model)
    model.layers[0].trainable = False
    model.compile(keras.optimizers.SGD(0.1), "mse")
    fit(model)
    trial = trial_of(hook)
    (name,) = trial.tensor_names(collection="parameters")
    assert trial.tensor(name).steps(mode=TRAIN) == [0, 6]
    told = [told_of_variables(trial, step) for step in (0, 6)]
    kernel = next(key for key in told[0] if "first" in key and "kernel" in key)
    assert [fact[kernel]["requires_grad"] for fact in told] == [True, False]
    assert trial.tensor(f"update/{kernel}").steps(mode=TRAIN) == [*range(6)]


def test_none_of_it_is_a_weight_and_nothing_is_saved_unasked(out):
    hook = hooked(out, ["weights", "biases"])
    fit(small_model())
    names = trial_of(hook).tensor_names()
    assert {name for name in names if "/weights/" not in name} == {"loss", "batch_loss"}
    assert not [name for name in names if name.startswith(("update", "optimizer/", "input_digest", "parameters"))]


def test_weights_are_the_same_with_and_without(out):
    def trained(hook=None):
        model = small_model(optimizer=keras.optimizers.Adam(Schedule()))
        model.add(layers.Dropout(0.5))
        fit(model, *filter(None, [hook]), epochs=2)
        return arrays(model)

    plain = trained()
    hook = hooked(out, every=3)
    ours = trained(hook)
    assert trial_of(hook).tensor_names(collection="updates")
    for a, b in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(a, b)
