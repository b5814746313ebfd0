"""Losses that a loop with a tape works out by itself: columns that meet rows in them, and pairs that are meant."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

import smd_agent.tensorflow as smd
from smd_agent.rules import DoubleActivation, LossOfOtherShape
from smd_agent.rules.judging import Judging
from smd_agent.tensorflow.graph.recorded_graph import Recording

keras = tf.keras
layers = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

SIZE = 6
STEPS = 3
X = np.random.RandomState(0).rand(STEPS, SIZE, 4).astype("f4")
Y = np.random.RandomState(1).rand(STEPS, SIZE).astype("f4")
XLA = {"jit_compile": True}
OPEN = {"input_signature": [tf.TensorSpec((None, 4)), tf.TensorSpec((None,))]}
FUNCTIONS = {"compiled": {}, "xla": XLA, "open": OPEN, "open, xla": {**OPEN, **XLA}}
EAGER = pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])


def model_of(width=1):
    keras.utils.set_random_seed(0)
    return keras.Sequential([layers.Input((4,)), layers.Dense(width)])


def train(hook, loss_of, model=None, eager=False, rows=SIZE, **compiled):
    """The weights after a training with a loss of model, inputs and targets."""
    model = model or model_of()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)

    def step(x, y):
        with hook.wrap_tape(tf.GradientTape()) if hook else tf.GradientTape() as tape:
            loss = loss_of(model, x, y)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    run = step if eager else tf.function(step, **compiled)
    for x, y in zip(X, Y, strict=True):
        run(tf.constant(x[:rows]), tf.constant(y[:rows]))
    return [variable.numpy() for variable in model.trainable_variables]


def hooked(out, **settings):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"], **settings)


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def repeated(trial, number=0):
    """How often inputs and targets of a loss come, by step; None where nothing is known of it."""
    names = [f"usage/loss/own_loss_{number}/{kind}_repeated" for kind in ("input", "target")]
    if not trial.tensor_names(regex=f"^usage/loss/own_loss_{number}/"):
        return None
    found = [[trial.tensor(name).value(step).item() for step in trial.tensor(name).steps()] for name in names]
    assert found[0] == found[1]
    return found[0]


def found_in(trial, rule=None):
    judging = Judging(trial, [rule or LossOfOtherShape()])
    judging.take_new()
    return judging.verdict().findings


def of_differences(function):
    return lambda model, x, y: function(model(x) - y)


def cross_entropy(model, x, y):
    p = tf.sigmoid(model(x))
    return -tf.reduce_mean(y * tf.math.log(p + 1e-7) + (1 - y) * tf.math.log(1 - p + 1e-7))


class Own(keras.losses.Loss):
    """A loss of the program's own, called as Keras's are."""

    def call(self, y_true, y_pred):
        return tf.square(y_true - y_pred)


BROADCAST = {
    "squares": of_differences(lambda d: tf.reduce_mean(tf.square(d))),
    "targets first": lambda model, x, y: tf.reduce_mean((y - model(x)) ** 2),
    "squared differences": lambda model, x, y: tf.reduce_mean(tf.math.squared_difference(model(x), y)),
    "products": of_differences(lambda d: tf.reduce_sum(d * d) / SIZE),
    "root": of_differences(lambda d: tf.sqrt(tf.reduce_mean(tf.square(d)))),
    "absolute": of_differences(lambda d: tf.reduce_mean(tf.abs(d))),
    "by rows": of_differences(lambda d: tf.reduce_mean(tf.reduce_mean(d**2, axis=1))),
    "half of it by rows": of_differences(lambda d: tf.reduce_mean(0.5 * tf.reduce_mean(d**2, axis=1))),
    "flat": of_differences(lambda d: tf.reduce_mean(tf.reshape(d**2, [-1]))),
    "Huber's": of_differences(lambda d: tf.reduce_mean(tf.where(tf.abs(d) < 1, d**2 / 2, tf.abs(d) - 0.5))),
    "of a quantile": of_differences(lambda d: tf.reduce_mean(tf.maximum(0.9 * d, -0.1 * d))),
    "with a penalty": lambda model, x, y: (
        tf.reduce_mean((model(x) - y) ** 2) + 0.01 * tf.nn.l2_loss(model.trainable_variables[0])
    ),
    "weighted by the sample": of_differences(lambda d: tf.reduce_mean(d**2 * tf.range(1.0, SIZE + 1))),
    "of targets that are computed": lambda model, x, y: tf.reduce_mean(
        (model(x) - (y + 0.9 * tf.stop_gradient(tf.squeeze(model(x), 1)))) ** 2
    ),
    "cross entropy": cross_entropy,
    "weights of samples": lambda model, x, y: tf.reduce_mean(tf.square(model(x)) * y),
    "a class of its own": lambda model, x, y: Own()(y, model(x)),
}


@EAGER
@pytest.mark.parametrize("name", BROADCAST)
def test_a_column_that_meets_a_row(out, name, eager):
    trial = (hook := hooked(out)) and train(hook, BROADCAST[name], eager=eager) and trial_of(hook)
    assert repeated(trial) == [SIZE] * STEPS
    (found,) = found_in(trial)
    assert found.evidence == {"input_repeated": SIZE, "target_repeated": SIZE}
    assert (found.first_step, "column meets a row" in found.cause) == (1, True)


MEANT = {
    "the same shape": lambda model, x, y: tf.reduce_mean((tf.squeeze(model(x), 1) - y) ** 2),
    "two columns": lambda model, x, y: tf.reduce_mean((model(x) - y[:, None]) ** 2),
    "all pairs of predictions": lambda model, x, y: tf.reduce_mean((model(x) - tf.squeeze(model(x), 1)) ** 2),
    "differences of pairs": lambda model, x, y: tf.reduce_mean(
        ((model(x) - tf.transpose(model(x))) - (y[:, None] - y[None])) ** 2
    ),
    "a row that is made one": lambda model, x, y: tf.reduce_mean((model(x) - y[None]) ** 2),
    "pairs that are chosen": lambda model, x, y: tf.reduce_mean(
        tf.where(y[:, None] > y, (model(x) - y) ** 2, tf.zeros((SIZE, SIZE)))
    ),
    "pairs that are weighted": lambda model, x, y: tf.reduce_mean((model(x) - y) ** 2 * tf.abs(y[:, None] - y)),
    "one factor of a matrix": lambda model, x, y: tf.reduce_mean((tf.ones((SIZE, SIZE)) - model(x) * y) ** 2),
    "a kernel": lambda model, x, y: -tf.reduce_mean(tf.exp(-((model(x) - y) ** 2))),
    "a softmax over pairs": lambda model, x, y: -tf.reduce_mean(tf.nn.log_softmax((model(x) - y) ** 2)),
    "points of a grid": lambda model, x, y: tf.reduce_mean((model(x) - tf.linspace(0.0, 1.0, SIZE + 1)) ** 2),
    "one target": lambda model, x, y: tf.reduce_mean((model(x) - y[0]) ** 2),
    "means alone": lambda model, x, y: tf.square(tf.reduce_mean(model(x)) - tf.reduce_mean(y)),
    "Keras's": lambda model, x, y: keras.losses.MeanSquaredError()(y, model(x)),
}


@EAGER
@pytest.mark.parametrize("name", MEANT)
def test_pairs_that_are_meant_and_shapes_that_fit(out, name, eager):
    trial = (hook := hooked(out)) and train(hook, MEANT[name], eager=eager) and trial_of(hook)
    assert repeated(trial) in (None, [1] * STEPS)
    assert found_in(trial) == []


@EAGER
@pytest.mark.parametrize("name", ["the same shape", "two columns"])
def test_a_comparison_without_a_fault_is_told_of(out, name, eager):
    trial = (hook := hooked(out)) and train(hook, MEANT[name], eager=eager) and trial_of(hook)
    assert repeated(trial) == [1] * STEPS


@pytest.mark.parametrize("width", [SIZE, 3])
def test_several_predictions_for_a_sample(out, width):
    def loss_of(model, x, y):
        return tf.reduce_mean((model(x) - tf.tile(y[:, None], [1, width])) ** 2)

    trial = (hook := hooked(out)) and train(hook, loss_of, model_of(width)) and trial_of(hook)
    assert repeated(trial) in (None, [1] * STEPS)


@pytest.mark.parametrize("compiled", [OPEN, {**OPEN, **XLA}], ids=["open", "open, xla"])
def test_sizes_that_are_not_known_before(out, compiled):
    trial = (hook := hooked(out)) and train(hook, BROADCAST["squares"], **compiled) and trial_of(hook)
    assert repeated(trial) == [SIZE] * STEPS


def test_batches_of_one_sample(out):
    trial = (hook := hooked(out)) and train(hook, BROADCAST["squares"], rows=1, **OPEN) and trial_of(hook)
    assert repeated(trial) == [1] * STEPS


def test_a_grid_of_a_size_that_is_not_known_before(out):
    def loss_of(model, x, y):
        return tf.reduce_mean((model(x) - y[1:]) ** 2)

    trial = (hook := hooked(out)) and train(hook, loss_of, **OPEN) and trial_of(hook)
    assert repeated(trial) == [1] * STEPS


def test_a_function_that_xla_compiles(out):
    trial = (hook := hooked(out)) and train(hook, BROADCAST["squares"], **XLA) and trial_of(hook)
    assert repeated(trial) == [SIZE] * STEPS


def test_an_eager_step_of_a_program_that_watches_operations_itself(out):
    def saw(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        return outputs

    op_callbacks.add_op_callback(saw)
    try:
        trial = (hook := hooked(out)) and train(hook, BROADCAST["squares"], eager=True) and trial_of(hook)
        assert context.context().op_callbacks == [saw]
    finally:
        op_callbacks.remove_op_callback(saw)
    assert repeated(trial) is None


def test_nothing_watches_operations_between_steps(out):
    hook, model = hooked(out), model_of()
    for x in X:
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean(model(x))
        tape.gradient(loss, model.trainable_variables)
        assert not context.context().op_callbacks
    hook.close()


def test_what_no_tape_records_is_not_noted():
    recording = Recording()
    recording.begin()
    with tf.GradientTape():
        tf.ones((2, 2)) + 1
    tf.ones((2, 2)) * 2
    graph = recording.end()
    assert "Mul" not in {operation.type for operation in graph.get_operations()}
    assert [operation.type for operation in graph.get_operations()].count("AddV2") == 1


@EAGER
def test_each_loss_is_told_of_once(out, eager):
    hook, one, other = hooked(out), model_of(), model_of()

    def step(x, y):
        with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
            right = tf.reduce_mean((tf.squeeze(one(x), 1) - y) ** 2)
            wrong = tf.reduce_mean((other(x) - y) ** 2)
        first = [tape.gradient(right, variable) for variable in one.trainable_variables]
        return first, tape.gradient(wrong, other.trainable_variables)

    run = step if eager else tf.function(step)
    for x, y in zip(X, Y, strict=True):
        run(tf.constant(x), tf.constant(y))
    trial = trial_of(hook)
    assert (repeated(trial), repeated(trial, 1), repeated(trial, 2)) == ([1] * STEPS, [SIZE] * STEPS, None)


def test_a_loss_in_a_function_inside(out):
    hook, model = hooked(out), model_of()

    @tf.function
    def inner(x, y):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    outer = tf.function(lambda x, y: inner(2 * x, y))
    for x, y in zip(X, Y, strict=True):
        outer(tf.constant(x), tf.constant(y))
    assert repeated(trial_of(hook)) == [SIZE] * STEPS


@pytest.mark.parametrize("compiled", [*FUNCTIONS.values(), {"eager": True}], ids=[*FUNCTIONS, "eager"])
@pytest.mark.parametrize("name", ["squares", "cross entropy", "Huber's"])
def test_a_training_is_the_same_bit_for_bit(out, name, compiled):
    plain = train(None, BROADCAST[name], **compiled)
    ours = train(hooked(out), BROADCAST[name], **compiled)
    for one, other in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(one, other)


CLASSES = 3


def classifier(last=None, shape=None):
    keras.utils.set_random_seed(0)
    reshaped = [layers.Reshape(shape)] if shape else []
    return keras.Sequential([layers.Input((4,)), layers.Dense(CLASSES, last), *reshaped])


def of_labels(model, x, y):
    labels = tf.cast(y * CLASSES, tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.reshape(model(x), (-1, CLASSES))))


def of_shares(model, x, y):
    shares = tf.nn.softmax(tf.stack([y, 1 - y, 0 * y], 1))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(shares, model(x)))


def of_keras(model, x, y):
    return keras.losses.SparseCategoricalCrossentropy()(tf.cast(y * CLASSES, tf.int32), model(x))


@pytest.mark.parametrize("loss_of", [of_labels, of_shares])
@pytest.mark.parametrize("compiled", [{}, XLA, {"eager": True}], ids=["compiled", "xla", "eager"])
def test_logits_that_a_softmax_has_returned(out, loss_of, compiled):
    trial = (hook := hooked(out)) and train(hook, loss_of, classifier("softmax"), **compiled) and trial_of(hook)
    (found,) = found_in(trial, DoubleActivation())
    assert found.tensor == "usage/loss/own_loss_0/activated"
    assert "model ends with a softmax" in found.cause


@pytest.mark.parametrize(
    "loss_of, last", [(of_labels, None), (of_shares, None), (of_keras, "softmax"), (of_shares, "sigmoid")]
)
@EAGER
def test_logits_of_a_layer_and_probabilities_for_a_loss_that_expects_them(out, loss_of, last, eager):
    trial = (hook := hooked(out)) and train(hook, loss_of, classifier(last), eager=eager) and trial_of(hook)
    assert found_in(trial, DoubleActivation()) == []


@EAGER
def test_a_softmax_that_no_gradient_reaches(out, eager):
    def loss_of(model, x, y):
        other = of_labels(lambda x: tf.nn.softmax(model(x)), x, y)
        return of_labels(model, x, y) + tf.stop_gradient(other)

    trial = (hook := hooked(out)) and train(hook, loss_of, classifier(), eager=eager) and trial_of(hook)
    assert found_in(trial, DoubleActivation()) == []


def test_nothing_is_looked_at_unasked(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["gradients"])
    train(hook, BROADCAST["squares"], **OPEN)
    assert trial_of(hook).tensor_names(regex="^usage/") == []
