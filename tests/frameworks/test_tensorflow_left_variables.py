"""Variables of loops with a GradientTape that stand behind those that are trained, and that nothing trains."""

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
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

STEPS = 16
X = np.random.RandomState(0).rand(8, 4).astype("f4")
Y = np.arange(8) % 3
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

WRAPPED = pytest.mark.parametrize("wrap", [tf.function, lambda step: step], ids=["compiled", "eager"])


class Program:
    """The parts of a program, made in the order in which they are asked for."""

    def __init__(self, out, every=1):
        keras.utils.set_random_seed(0)
        self.hook = smd.KerasHook(
            out, save_config=smd.SaveConfig(save_interval=every), include_collections=["parameters"]
        )

    def net(self, name, width, inputs=4):
        return keras.Sequential([layers.Input((inputs,)), layers.Dense(width, name=name)], name=f"net_{name}")

    def tape(self, **settings):
        return self.hook.wrap_tape(tf.GradientTape(**settings))

    def optimizer(self, variables, rate=0.1):
        optimizer = keras.optimizers.SGD(rate)
        optimizer.build(variables)
        return optimizer

    def update(self, optimizer, tape, loss, variables):
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    def run(self, step, steps=STEPS):
        for _ in range(steps):
            step()
        self.hook.close()
        return smd.create_trial(self.hook.out_dir)


def told(trial, step):
    return json.loads(str(trial.tensor("parameters/variables").value(step, mode=smd.modes.TRAIN)[0]))


def found_in(trial):
    judging = Judging(trial, [ParameterNotOptimized()])
    judging.take_new()
    return judging.verdict().findings


def body_and_head(program, trained=lambda body, head: body.trainable_variables, front=lambda tensor: tensor):
    body, head = program.net("body", 5), program.net("head", 3, 5)
    variables = trained(body, head)
    optimizer = program.optimizer(variables)

    def step():
        with program.tape() as tape:
            loss = loss_of(Y, head(front(body(X))))
        program.update(optimizer, tape, loss, variables)

    return step


@pytest.mark.parametrize("compiled", [{}, {"jit_compile": True}], ids=["compiled", "xla"])
def test_a_head_that_was_left_out(out, compiled):
    program = Program(out)
    trial = program.run(tf.function(body_and_head(program), **compiled))
    at_first, later = (trial.tensor("parameters/variables").steps(mode=smd.modes.TRAIN))[:2]
    assert (at_first, later) == (0, 10)
    assert not [name for name in told(trial, at_first) if "head" in name]
    heads = {name: fact for name, fact in told(trial, later).items() if "head" in name}
    assert len(heads) == 2
    for fact in heads.values():
        assert fact == {"requires_grad": True, "optimizer": None, "gradient": False, "behind": True}
    found = found_in(trial)
    assert {one.tensor for one in found} == {*heads}
    for one in found:
        assert (one.severity, one.first_step, one.last_step) == (Severity.WARNING, 10, STEPS - 1)
        assert one.evidence == {"not_optimized": 2, "optimized": 2}
        assert "left out where gradients are taken" in one.cause


def test_one_step_less_than_it_takes(out):
    program = Program(out)
    assert found_in(program.run(tf.function(body_and_head(program)), steps=10)) == []


def test_a_layer_in_the_middle(out):
    program = Program(out)
    front, middle, head = program.net("front", 5), program.net("middle", 5, 5), program.net("head", 3, 5)
    variables = front.trainable_variables + head.trainable_variables
    optimizer = program.optimizer(variables)

    @tf.function
    def step():
        with program.tape() as tape:
            loss = loss_of(Y, head(middle(front(X))))
        program.update(optimizer, tape, loss, variables)

    assert {one.tensor.split("/")[-2] for one in found_in(program.run(step))} == {"middle"}


def test_a_training_with_a_head_that_was_left_out_is_the_same_bit_for_bit(out):
    def train(folder, every):
        program, made = Program(folder, every), []
        make = program.net
        program.net = lambda *given: made.append(make(*given)) or made[-1]
        program.run(tf.function(body_and_head(program)))
        return [variable.numpy() for net in made for variable in net.trainable_variables]

    for one, other in zip(train(f"{out}-1", 1), train(f"{out}-2", 1000), strict=True):
        np.testing.assert_array_equal(one, other)


# Programs that leave variables out and are right.


def frozen_body(program):
    return body_and_head(program, lambda body, head: head.trainable_variables)


def all_of_it(program):
    return body_and_head(program, lambda body, head: body.trainable_variables + head.trainable_variables)


def without_training(program):
    """A head that is frozen by its flag, as Keras says it."""

    def trained(body, head):
        head.trainable = False
        return body.trainable_variables

    return body_and_head(program, trained)


def head_that_no_gradient_passes(program):
    return body_and_head(program, lambda body, head: head.trainable_variables, tf.stop_gradient)


def front_of_a_trained_front(program):
    """A part that was made before those that are trained, and stands behind one: an adapter in front of it."""
    old, adapter = program.net("old", 3), program.net("adapter", 4)
    optimizer = program.optimizer(adapter.trainable_variables)

    def step():
        with program.tape() as tape:
            loss = loss_of(Y, old(adapter(X)))
        program.update(optimizer, tape, loss, adapter.trainable_variables)

    return step


def teacher_that_was_made_later(program):
    student, teacher = program.net("student", 3), program.net("teacher", 3)
    optimizer = program.optimizer(student.trainable_variables)

    def step():
        with program.tape() as tape:
            loss = tf.reduce_mean((student(X) - teacher(X)) ** 2)
        program.update(optimizer, tape, loss, student.trainable_variables)

    return step


def weights_that_are_pulled_to_their_first(program):
    net = program.net("pulled", 3)
    first = [tf.Variable(variable.numpy()) for variable in net.trainable_variables]
    strength = [tf.Variable(np.ones(variable.shape, "f4")) for variable in net.trainable_variables]
    optimizer = program.optimizer(net.trainable_variables)

    def step():
        with program.tape() as tape:
            loss = loss_of(Y, net(X))
            for variable, old, factor in zip(net.trainable_variables, first, strength, strict=True):
                loss += tf.reduce_sum(factor * (variable - old) ** 2)
        program.update(optimizer, tape, loss, net.trainable_variables)

    return step


def numbers_beside_the_layers(program):
    net = program.net("net", 3)
    scale, weights = tf.Variable(0.5), tf.Variable([1.0, 2.0, 1.0])
    optimizer = program.optimizer(net.trainable_variables)

    def step():
        with program.tape() as tape:
            loss = scale * loss_of(Y, weights * net(X))
        program.update(optimizer, tape, loss, net.trainable_variables)

    return step


def second_output_that_the_loss_leaves_out(program):
    body, head, other = program.net("body", 5), program.net("head", 3, 5), program.net("other", 3, 5)
    variables = body.trainable_variables + head.trainable_variables
    optimizer = program.optimizer(variables)

    def step():
        with program.tape() as tape:
            features = body(X)
            other(features)
            loss = loss_of(Y, head(features))
        program.update(optimizer, tape, loss, variables)

    return step


def head_that_is_updated_by_hand(program):
    body, head = program.net("body", 5), program.net("head", 3, 5)
    optimizer = program.optimizer(body.trainable_variables)

    def step():
        with program.tape() as tape:
            loss = loss_of(Y, head(body(X)))
        program.update(optimizer, tape, loss, body.trainable_variables)
        for variable in head.trainable_variables:
            variable.assign_sub(0.01 * tf.ones(variable.shape))

    return step


def each_variable_by_itself(program):
    body, head = program.net("body", 5), program.net("head", 3, 5)
    variables = body.trainable_variables + head.trainable_variables
    optimizer = program.optimizer(variables)

    def step():
        with program.tape(persistent=True) as tape:
            loss = loss_of(Y, head(body(X)))
        gradients = [tape.gradient(loss, variable) for variable in variables]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    return step


SILENT = [
    *(frozen_body, all_of_it, without_training, head_that_no_gradient_passes, front_of_a_trained_front),
    *(teacher_that_was_made_later, weights_that_are_pulled_to_their_first, numbers_beside_the_layers),
    *(second_output_that_the_loss_leaves_out, head_that_is_updated_by_hand, each_variable_by_itself),
]


@pytest.mark.parametrize("make", SILENT)
@WRAPPED
def test_programs_that_leave_variables_out_rightly(out, make, wrap):
    program = Program(out)
    trial = program.run(wrap(make(program)))
    assert not [name for name, fact in told(trial, 0).items() if "behind" in fact]
    assert trial.tensor("parameters/variables").steps(mode=smd.modes.TRAIN) == [0]
    assert found_in(trial) == []


def test_an_eager_step(out):
    program = Program(out)
    assert {"head" in one.tensor for one in found_in(program.run(body_and_head(program)))} == {True}


def test_variables_that_operations_are_given_themselves(out):
    program = Program(out)
    body, head = (tf.Variable(np.random.RandomState(1).rand(*shape).astype("f4")) for shape in ((4, 5), (5, 3)))
    optimizer = program.optimizer([body])

    def step():
        with program.tape() as tape:
            loss = loss_of(Y, tf.nn.relu(X @ body) @ head)
        program.update(optimizer, tape, loss, [body])

    (found,) = found_in(program.run(step))
    assert found.evidence == {"not_optimized": 1, "optimized": 1}


def gan(program, apart, wrap):
    """A step of a generator and one of a discriminator, which was made after it; in one function or in two."""
    generator, critic = program.net("generator", 4), program.net("critic", 1)
    mine, its = generator.trainable_variables, critic.trainable_variables
    optimizers = [program.optimizer(mine), program.optimizer(its)]

    def generate():
        with program.tape() as tape:
            loss = -tf.reduce_mean(critic(generator(X)))
        program.update(optimizers[0], tape, loss, mine)

    def criticize():
        with program.tape() as tape:
            loss = tf.reduce_mean(critic(generator(X))) - tf.reduce_mean(critic(X))
        program.update(optimizers[1], tape, loss, its)

    if not apart:
        return wrap(lambda: (generate(), criticize())), lambda: None
    return wrap(generate), wrap(criticize)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("turn", [1, 5])
@pytest.mark.parametrize("apart", [False, True])
@WRAPPED
def test_a_gan(out, apart, turn, every, wrap):
    program, count = Program(out, every), iter(range(10**6))
    generate, criticize = gan(program, apart, wrap)

    def step():
        generate()
        if next(count) % turn == turn - 1:
            criticize()

    trial = program.run(step, 30)
    assert not [1 for at in trial.tensor("parameters/variables").steps() for one in told(trial, at) if "behind" in one]
    assert found_in(trial) == []


@pytest.mark.parametrize("steps, silent", [(15, False), (30, True)])
def test_another_half_that_gets_its_turn_much_later(out, steps, silent):
    program, count = Program(out), iter(range(steps))
    generate, criticize = gan(program, True, tf.function)

    def step():
        generate()
        if next(count) == 20:
            criticize()

    assert (found_in(program.run(step, steps)) == []) is silent
