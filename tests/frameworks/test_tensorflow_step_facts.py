"""Updates, settings of optimizers, and what is known of variables, of loops with a GradientTape, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

keras = tf.keras
layers = keras.layers
KERAS_3 = str(getattr(keras, "__version__", "2")).startswith("3")

pytestmark = [
    # Keras 2.15 draws seeds in a way that Python warns of.
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning"),
]

TRAIN = smd.modes.TRAIN
COLLECTIONS = ["updates", "optimizer", "parameters"]
WAYS = {"eager": lambda step: step, "compiled": tf.function, "xla": lambda step: tf.function(step, jit_compile=True)}
X = np.random.RandomState(0).rand(6, 4, 4).astype("f4")


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of the program's own."""

    def __call__(self, step):
        return 0.1 / (tf.cast(step, tf.float32) + 1.0)

    def get_config(self):
        return {}


def hooked(out, collections=COLLECTIONS, every=1):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=every), include_collections=collections)


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def value(trial, name, step):
    return trial.tensor(name).value(step, mode=TRAIN).item()


def values(trial, name):
    return [value(trial, name, step) for step in trial.tensor(name).steps(mode=TRAIN)]


def told_of_variables(trial, step):
    return json.loads(str(trial.tensor("parameters/variables").value(step, mode=TRAIN)[0]))


def array(variable):
    return (variable if isinstance(variable, tf.Variable) else variable.value).numpy()


def net(name, width=3):
    keras.utils.set_random_seed(0)
    inputs = [layers.Input((4,))]
    return keras.Sequential([*inputs, layers.Dense(5, name=f"{name}_a"), layers.Dense(width, name=f"{name}_b")])


def training(hook, model, optimizer, given=lambda pairs: pairs):
    """A step of training; ``given`` are the pairs that the optimizer gets."""

    def step(x):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(given(list(zip(tape.gradient(loss, variables), variables, strict=True))))

    return step


OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "AdamW": lambda: keras.optimizers.AdamW(1e-2, weight_decay=0.1),
}
if not KERAS_3:
    OPTIMIZERS["legacy"] = lambda: keras.optimizers.legacy.Adam(1e-2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_updates_are_what_the_optimizer_has_changed(out, kind, way):
    hook, model = hooked(out), net("moved")
    optimizer = OPTIMIZERS[kind]()
    if kind != "legacy":
        # What tf.function compiles may make no variables in its second call.
        optimizer.build(model.trainable_variables)
    step, seen = WAYS[way](training(hook, model, optimizer)), []
    for x in X:
        before = [array(variable) for variable in model.trainable_variables]
        step(x)
        seen.append((before, [array(variable) for variable in model.trainable_variables]))
    trial = trial_of(hook)
    names = [*told_of_variables(trial, 0)]
    assert len(names) == 4
    for place, name in enumerate(names):
        assert trial.tensor(f"update/{name}").steps(mode=TRAIN) == [*range(6)]
        for number, (before, after) in enumerate(seen):
            move = np.linalg.norm((after[place] - before[place]).astype("f8"))
            length = np.linalg.norm(before[place].astype("f8"))
            assert value(trial, f"update/{name}", number) == pytest.approx(move, rel=1e-5)
            ratio = move / length if length else float(move > 0)
            assert value(trial, f"update_ratio/{name}", number) == pytest.approx(ratio, rel=1e-5)
    assert trial.tensor_names(collection="weights") == trial.tensor_names(collection="biases") == []


@pytest.mark.parametrize("way", WAYS)
def test_each_variable_is_trained_forgotten_or_not_reached(out, way):
    hook, model = hooked(out), net("told")
    unused = keras.Variable([1.0, 2.0], name="unused") if KERAS_3 else tf.Variable([1.0, 2.0], name="unused")
    forgotten = {id(variable) for variable in model.layers[0].trainable_variables}

    def given(pairs):
        return [*((gradient, v) for gradient, v in pairs if id(v) not in forgotten), (None, unused)]

    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build([*model.layers[1].trainable_variables, unused])
    step = WAYS[way](training(hook, model, optimizer, given))
    for x in X:
        step(x)
    trial = trial_of(hook)
    assert trial.tensor("parameters/variables").steps(mode=TRAIN) == [0]
    found = {}
    for name, fact in told_of_variables(trial, 0).items():
        key = next(part for part in ("told_a", "told_b", "unused") if part in name)
        found[key] = fact["requires_grad"], fact["optimizer"], fact["gradient"]
    title = found["told_b"][1]
    assert "Adam" in title
    assert found == {
        "told_a": (True, None, True),
        "told_b": (True, title, True),
        "unused": (True, title, False),
    }
    assert not [name for name in trial.tensor_names(regex="^update/") if "told_a" in name]
    assert value(trial, trial.tensor_names(regex="^update/.*unused")[0], 3) == 0


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_settings_are_those_that_the_update_used(out, way):
    hook, first, second = hooked(out), net("set"), net("judge", 2)
    generator = keras.optimizers.SGD(Schedule(), momentum=0.7)
    judge = keras.optimizers.Adam(0.5, beta_1=0.8)
    for optimizer, model in ((generator, first), (judge, second)):
        optimizer.build(model.trainable_variables)
    steps = [WAYS[way](training(hook, model, o)) for model, o in ((first, generator), (second, judge))]
    for number, x in enumerate(X):
        judge.learning_rate.assign(0.5 / (number + 1))
        for step in steps:
            step(x)
    trial = trial_of(hook)
    found = {name: values(trial, name) for name in trial.tensor_names(collection="optimizer")}
    settings = {(("SGD" if "SGD" in name else "Adam"), name.split("/")[-1]): found[name] for name in found}
    assert settings["SGD", "lr"] == pytest.approx([0.1 / (step + 1) for step in range(6)])
    assert settings["Adam", "lr"] == pytest.approx([0.5 / (step + 1) for step in range(6)])
    assert settings["SGD", "momentum"] == pytest.approx([0.7] * 6)
    assert settings["Adam", "beta_1"] == pytest.approx([0.8] * 6)
    assert settings["Adam", "eps"] == pytest.approx([1e-7] * 6)
    # What is known of variables is told once, of both models: it is complete when the step is over.
    assert trial.tensor("parameters/variables").steps(mode=TRAIN) == [0]
    assert len(told_of_variables(trial, 0)) == 8


def scaled_training(hook, model, times=1.0, **options):
    """A step of training by an optimizer that scales the loss."""
    wrapper = keras.optimizers.LossScaleOptimizer if KERAS_3 else keras.mixed_precision.LossScaleOptimizer
    optimizer = wrapper(keras.optimizers.SGD(0.1 / times), **options)
    optimizer.build(model.trainable_variables)

    def step(x):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = times * tf.reduce_mean(model(x) ** 2)
            scaled = optimizer.scale_loss(loss) if KERAS_3 else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        if not KERAS_3:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    return step


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_the_scale_of_a_loss_is_the_one_that_the_step_used(out, way):
    hook, model = hooked(out), net("scaled")
    step = WAYS[way](scaled_training(hook, model, initial_scale=64.0, dynamic_growth_steps=2))
    before = array(model.trainable_variables[0])
    for number, x in enumerate(X):
        step(x)
        if not number:
            move = np.linalg.norm(array(model.trainable_variables[0]) - before)
    trial = trial_of(hook)
    (scale,) = trial.tensor_names(regex="^optimizer/.*/loss_scale$")
    assert values(trial, scale) == [64.0, 64.0, 128.0, 128.0, 256.0, 256.0]
    assert values(trial, scale.replace("/loss_scale", "/skipped")) == [0] * 6
    (name,) = trial.tensor_names(regex="^update/.*scaled_a/kernel$")
    assert value(trial, name, 0) == pytest.approx(move, rel=1e-5)
    (rate,) = trial.tensor_names(regex="^optimizer/.*/lr$")
    assert "SGD" in rate


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_updates_that_are_left_out_as_gradients_overflow(out, way):
    hook, model = hooked(out), net("left_out")
    step = WAYS[way](scaled_training(hook, model, times=1000.0, initial_scale=2.0**122))
    for x in X:
        step(x)
    trial = trial_of(hook)
    (name,) = trial.tensor_names(regex="^optimizer/.*/skipped$")
    moved = np.sum([values(trial, update) for update in trial.tensor_names(regex="^update/")], 0)
    assert values(trial, name) == [float(not move) for move in moved]
    assert {*values(trial, name)} == {0, 1}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_the_same_with_and_without(out, way):
    def trained(hook, wrap):
        model = net("same")
        optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5))
        optimizer.build(model.trainable_variables)
        step = WAYS[way](training(hook, model, optimizer) if wrap else training(Plain, model, optimizer))
        for x in X:
            step(x)
        return [array(variable) for variable in model.trainable_variables]

    class Plain:
        @staticmethod
        def wrap_tape(tape):
            return tape

    plain = trained(None, False)
    hook = hooked(out, every=2)
    ours = trained(hook, True)
    trial = trial_of(hook)
    (rate,) = trial.tensor_names(regex="^optimizer/.*/lr$")
    assert trial.tensor(rate).steps(mode=TRAIN) == [0, 2, 4]
    assert values(trial, rate) == pytest.approx([0.1, 0.05, 0.025])
    for a, b in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_is_saved_unasked(out):
    hook, model = hooked(out, ["weights", "biases"]), net("unasked")
    step = training(hook, model, keras.optimizers.SGD(0.1))
    for x in X:
        step(x)
    names = trial_of(hook).tensor_names()
    assert {name for name in names if not name.startswith("weights/")} == {"loss"}
