"""Variables of models of fit that nothing trains: set trainable after compile(), or held by a layer of Keras 3."""

from __future__ import annotations

import json

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.rules import ParameterNotOptimized
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging

keras = tf.keras
layers = keras.layers
KERAS_3 = str(getattr(keras, "__version__", "2")).startswith("3")
pytestmark = [
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning"),
    # Keras may warn of the fault itself.
    pytest.mark.filterwarnings("ignore:.*trainable:UserWarning"),
]

X, Y = np.random.RandomState(0).rand(48, 4).astype("f4"), np.random.RandomState(1).rand(48, 1).astype("f4")
KINDS = {"compiled": {"jit_compile": False}, "xla": {"jit_compile": True}}


def net_of(width, name, inputs=4):
    return keras.Sequential([layers.Input((inputs,)), layers.Dense(width, name=f"{name}_layer")], name=name)


class Program:
    """A base and a head, which a hook looks at in every step."""

    def __init__(self, out=None, every=1, **options):
        keras.utils.set_random_seed(0)
        config = smd.SaveConfig(save_interval=every)
        self.hook = out and smd.KerasHook(out, save_config=config, include_collections=["parameters"])
        self.base, self.head = net_of(5, "base"), net_of(1, "head", 5)
        self.options = options

    def model(self, name="model"):
        found = keras.Sequential([layers.Input((4,)), self.base, self.head], name=name)
        return self.compiled(found)

    def compiled(self, model):
        model.compile(keras.optimizers.SGD(0.1), "mse", **self.options)
        return model

    def fit(self, model, epochs=1, rows=None):
        model.fit(X[:rows], Y[:rows], batch_size=4, epochs=epochs, verbose=0)

    def found(self):
        self.hook.close()
        self.trial = smd.create_trial(self.hook.out_dir)
        judging = Judging(self.trial, [ParameterNotOptimized()])
        judging.take_new()
        return judging.verdict().findings

    def unfrozen(self):
        names = self.trial.tensor_names(collection="parameters")
        texts = [self.trial.tensor(name).value(at)[0] for name in names for at in self.trial.tensor(name).steps()]
        return {name for text in texts for name, fact in json.loads(str(text)).items() if fact.get("unfrozen")}


def of_the_base(name):
    return "base_layer" in name


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_phase_without_compile(out, kind):
    program = Program(out, **KINDS[kind])
    program.base.trainable = False
    model = program.model()
    program.fit(model)
    program.base.trainable = True
    before = [value.copy() for value in program.base.get_weights()]
    program.fit(model, 2)
    for one, other in zip(before, program.base.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    found = program.found()
    if not KERAS_3:
        assert (found, program.unfrozen()) == ([], set())
        return
    assert [of_the_base(one.tensor) for one in found] == [True, True]
    for one in found:
        # Twelve steps of the first phase, and ten in which they have not changed.
        assert (one.severity, one.first_step, one.last_step) == (Severity.PROBLEM, 22, 35)
        assert one.evidence == {"not_optimized": 2, "optimized": 2}
        assert "after compile()" in one.cause
        assert "again" in one.advice


@pytest.mark.skipif(not KERAS_3, reason="Keras 2 sets what can be trained back in fit")
def test_one_that_is_compiled_again_after_all(out):
    program = Program(out)
    program.base.trainable = False
    model = program.model()
    program.fit(model)
    program.base.trainable = True
    program.fit(model, 2)
    program.fit(program.compiled(model))
    assert program.found() == []
    assert len(program.unfrozen()) == 2


def compiled_again(program, model):
    program.base.trainable = True
    program.fit(program.compiled(model), 2)


def another_model(program, model):
    program.base.trainable = True
    program.fit(program.model("second"), 2)


def frozen_all_along(program, model):
    program.fit(model, 2)


def frozen_now(program, model):
    program.base.trainable = program.head.trainable = False
    program.fit(model, 2)


def set_by_hand(program, model):
    """As a copy of other weights, which follows them."""
    program.base.trainable = True
    for _ in range(24):
        program.base.set_weights([value + 0.1 for value in program.base.get_weights()])
        program.fit(model, rows=4)


def trained_by_another_model(program, model):
    """As the discriminator of a GAN, which the model of the generator holds frozen."""
    program.base.trainable = True
    other = program.compiled(keras.Sequential([layers.Input((4,)), program.base, layers.Dense(1)], name="other"))
    for _ in range(24):
        program.fit(other, rows=4)
        program.fit(model, rows=4)


def shown_and_frozen_again(program, model):
    program.base.trainable = True
    model.evaluate(X, Y, verbose=0)
    program.base.trainable = False
    program.fit(model, 2)


SILENT = [
    *(compiled_again, another_model, frozen_all_along, frozen_now, set_by_hand, trained_by_another_model),
    shown_and_frozen_again,
]


@pytest.mark.parametrize("second", SILENT)
def test_second_phases_that_are_right(out, second):
    program = Program(out)
    program.base.trainable = False
    model = program.model()
    program.fit(model)
    second(program, model)
    assert program.found() == []
    assert program.unfrozen() == set()


def test_one_that_is_unfrozen_before_the_first_fit(out):
    program = Program(out)
    program.base.trainable = False
    model = program.model()
    program.base.trainable = True
    program.fit(model, 3)
    assert program.found() == []


@pytest.mark.parametrize("every", [7, 10])
def test_where_few_steps_are_saved(out, every):
    program = Program(out, every)
    program.base.trainable = False
    model = program.model()
    program.fit(model)
    program.base.trainable = True
    program.fit(model, 3)
    assert [of_the_base(one.tensor) for one in program.found()] == [True] * 2 * KERAS_3


def test_a_training_is_the_same_bit_for_bit(out):
    def run(program):
        program.base.trainable = False
        model = program.model()
        program.fit(model)
        program.base.trainable = True
        program.fit(model, 2)
        return model.get_weights()

    plain = run(Program())
    for one, other in zip(plain, run(Program(out)), strict=True):
        np.testing.assert_array_equal(one, other)


class Bells(layers.Layer):
    """Bells around centres, which it keeps as ``keep`` says."""

    def __init__(self, keep, use=lambda centres: centres):
        super().__init__(name="bells")
        self.keep, self.use = keep, use

    def build(self, shape):
        keras.utils.set_random_seed(1)
        self.centres = self.keep(self, np.random.RandomState(2).rand(3, shape[-1]).astype("f4"))
        super().build(shape)

    def call(self, x):
        centres = self.centres
        centres = next(iter(centres.values())) if isinstance(centres, dict) else centres
        centres = centres[0] if isinstance(centres, (list, tuple)) else centres
        return tf.exp(-tf.reduce_sum((tf.expand_dims(x, 1) - self.use(centres)) ** 2, axis=-1))


def plain(_, values):
    return tf.Variable(values, name="centres")


def added(layer, values):
    return layer.add_weight(shape=values.shape, name="centres", initializer=keras.initializers.Constant(0.3))


def bells(program, keep, use=lambda centres: centres, kind=keras.Model):
    x = layers.Input((4,))
    model = kind(x, layers.Dense(1)(Bells(keep, use)(x)))
    return program.compiled(model)


KEPT = {"attribute": plain, "list": lambda *given: [plain(*given)], "dict": lambda *given: {"all": plain(*given)}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", KEPT)
def test_plain_variables_of_a_layer(out, kept, kind):
    program = Program(out, **KINDS[kind])
    model = bells(program, KEPT[kept])
    program.fit(model, 2)
    found = program.found()
    if not KERAS_3:
        assert found == []
        return
    (one,) = found
    assert "centres" in one.tensor
    assert (one.severity, one.first_step, one.last_step) == (Severity.WARNING, 10, 23)
    assert one.evidence == {"not_optimized": 1, "optimized": 2}
    assert "plain tf.Variable" in one.cause
    assert "add_weight()" in one.advice


def fixed(_, values):
    return tf.Variable(values, trainable=False)


def constant(_, values):
    return tf.constant(values)


def number(*_):
    return tf.Variable(0.5)


class Own(keras.Model):
    """Updates by itself what no optimizer of Keras's knows."""

    def train_step(self, data):
        x, y = data
        variable = self.layers[1].centres
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
        own = self.trainable_variables
        *gradients, last = tape.gradient(loss, [*own, variable])
        self.optimizer.apply_gradients(zip(gradients, own, strict=True))
        variable.assign_sub(0.1 * last)
        return {"loss": loss}


RIGHT = {
    "a weight": (added,),
    "not to be trained": (fixed,),
    "a constant": (constant,),
    "one number": (number,),
    "no gradient passes": (plain, tf.stop_gradient),
    "rounded": (plain, tf.round),
    "not used": (plain, lambda centres: tf.ones((3, 4))),
}


@pytest.mark.parametrize("name", RIGHT)
def test_variables_of_a_layer_that_are_as_they_should_be(out, name):
    program = Program(out)
    program.fit(bells(program, *RIGHT[name]), 2)
    assert program.found() == []


@pytest.mark.skipif(not KERAS_3, reason="Keras 2 knows of the variable")
def test_plain_variables_that_the_program_updates(out):
    program = Program(out)
    program.fit(bells(program, plain, kind=Own), 2)
    assert program.found() == []


def test_plain_variables_that_change_later(out):
    program = Program(out)
    model = bells(program, plain)
    program.fit(model, 2)
    centres = model.layers[1].centres
    centres.assign(centres * 0.9)
    program.fit(model)
    assert program.found() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_with_plain_variables_is_the_same_bit_for_bit(out, kind):
    def run(program):
        model = bells(program, plain)
        program.fit(model, 2)
        return model.get_weights()

    plainly = run(Program(**KINDS[kind]))
    for one, other in zip(plainly, run(Program(out, **KINDS[kind])), strict=True):
        np.testing.assert_array_equal(one, other)
