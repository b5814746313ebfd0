"""ValueBakedIn, on numbers that a tf.function was traced with: those that change later, and all that is meant."""

from __future__ import annotations

import time

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd
from smd_agent.rules import ValueBakedIn
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging

STEPS = 6
X = np.random.RandomState(0).rand(STEPS, 8, 4).astype("f4")
TRACED = "usage/python_number/{}/now"

beta = 0.0
rate = 0.25
count = 0
started = 0.5
shown = 0.5
again = 0.5


class Loop:
    """A model of one vector, and how it is trained."""

    def __init__(self, hook):
        self.hook = hook
        self.vector = tf.Variable(np.ones(4, "f4"), name="vector")
        self.optimizer = tf.keras.optimizers.SGD(0.01)
        self.optimizer.build([self.vector])
        self.weight = 0.0
        self.annealed = tf.Variable(0.0, trainable=False)

    def tape(self):
        return self.hook.wrap_tape(tf.GradientTape())

    def error(self, x):
        return tf.reduce_mean((tf.linalg.matvec(x, self.vector) - 1.0) ** 2)

    def size(self):
        return tf.reduce_sum(self.vector**2)

    def update(self, tape, loss):
        self.optimizer.apply_gradients([(tape.gradient(loss, self.vector), self.vector)])


def global_number(loop):
    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = loop.error(x) + beta * loop.size()
        loop.update(tape, loss)

    def assign(number):
        globals()["beta"] = number / STEPS

    return step, assign


def part_of_an_expression(loop):
    factor = 0.5

    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = loop.error(x) + 0.1 * (1.0 - factor) * loop.size()
        loop.update(tape, loss)

    def assign(number):
        nonlocal factor
        factor = 0.5 * 0.9**number

    return step, assign


def weighted(error, size, share):
    return error + tf.multiply(size, share)


def argument_of_a_helper(loop):
    share = 0

    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = weighted(loop.error(x), loop.size(), share=share)
        loop.update(tape, loss)

    def assign(number):
        nonlocal share
        share = number / STEPS

    return step, assign


def own_learning_rate(loop):
    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = loop.error(x)
        loop.vector.assign_sub(rate * tape.gradient(loss, loop.vector))

    def assign(number):
        globals()["rate"] = 0.25 * 0.5**number

    return step, assign


class Method(Loop):
    """A loop whose step is a method."""

    def penalty(self):
        return self.weight * self.size()

    @tf.function
    def step(self, x):
        with self.tape() as tape:
            loss = self.error(x) + self.penalty()
        self.update(tape, loss)


def attribute(loop):
    method = Method(loop.hook)

    def assign(number):
        method.weight = number / STEPS

    return method.step, assign


FAULTS = {
    "a global": (global_number, "beta"),
    "a part of an expression": (part_of_an_expression, "factor"),
    "an argument of a helper": (argument_of_a_helper, "share"),
    "a learning rate of one's own": (own_learning_rate, "rate"),
    "an attribute": (attribute, "self.weight"),
}


def variable(loop):
    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = loop.error(x) + loop.annealed * loop.size()
        loop.update(tape, loss)

    return step, lambda number: loop.annealed.assign(number / STEPS)


def argument(loop):
    now = 0.0

    @tf.function
    def step(x, share):
        with loop.tape() as tape:
            loss = loop.error(x) + share * loop.size()
        loop.update(tape, loss)

    def assign(number):
        nonlocal now
        now = number / STEPS

    return (lambda x: step(x, tf.constant(now, tf.float32))), assign


def traced_again(loop):
    def plain(x):
        with loop.tape() as tape:
            loss = loop.error(x) + again * loop.size()
        loop.update(tape, loss)

    made = {}

    def assign(number):
        globals()["again"] = float(number // 3)
        made["step"] = made["step"] if number % 3 else tf.function(plain)

    return (lambda x: made["step"](x)), assign


def counted():
    global count
    count += 1


def counter(loop):
    @tf.function
    def step(x):
        counted()
        with loop.tape() as tape:
            loss = loop.error(x) / count
        loop.update(tape, loss)

    def assign(number):
        globals()["count"] = number

    return step, assign


def clock(loop):
    @tf.function
    def step(x):
        print("traced after", time.time() - started, "seconds")
        with loop.tape() as tape:
            loss = 0.5 * loop.error(x)
        loop.update(tape, loss)

    def assign(number):
        globals()["started"] = 0.5 + number

    return step, assign


def only_shown(loop):
    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = 0.5 * loop.error(x)
        loop.update(tape, loss)
        tf.debugging.assert_all_finite(shown * loss, "not finite")
        return shown * loss

    def assign(number):
        globals()["shown"] = 0.5 + number

    return step, assign


def constant(loop):
    decay = 0.1

    @tf.function
    def step(x):
        with loop.tape() as tape:
            loss = loop.error(x) + decay * loop.size()
        loop.update(tape, loss)

    return step, lambda number: None


def own_name(loop):
    @tf.function
    def step(x):
        def inner(shown):
            return shown * loop.size()

        with loop.tape() as tape:
            loss = loop.error(x) + inner(0.5)
        loop.update(tape, loss)

    def assign(number):
        globals()["shown"] = 0.5 + number

    return step, assign


HEALTHY = {
    "a tf.Variable": variable,
    "an argument": argument,
    "a function that is traced again": traced_again,
    "a counter of traces": counter,
    "a clock": clock,
    "a number that is shown": only_shown,
    "a constant": constant,
    "a parameter of the same name": own_name,
}


def findings(out, make, every=1):
    hook = smd.KerasHook(
        str(out), save_config=smd.SaveConfig(save_interval=1), include_collections=["usage", "parameters"]
    )
    step, assign = make(Loop(hook))
    for number in range(STEPS):
        if number % every == 0:
            assign(number)
        step(tf.constant(X[number]))
    hook.close()
    judging = Judging(smd.create_trial(hook.out_dir), [ValueBakedIn()])
    judging.take_new()
    return judging.verdict().findings


@pytest.mark.parametrize("name", FAULTS)
def test_numbers_that_change_in_vain(tmp_path, name):
    make, number = FAULTS[name]
    (found,) = findings(tmp_path / "run", make)
    assert found.tensor == TRACED.format(number)
    assert found.severity is Severity.WARNING
    assert found.first_step == 1
    assert found.steps == STEPS - 1


@pytest.mark.parametrize("name", HEALTHY)
def test_numbers_that_are_meant(tmp_path, name):
    assert findings(tmp_path / "run", HEALTHY[name]) == []


def test_one_other_value_is_a_note(tmp_path):
    (found,) = findings(tmp_path / "run", part_of_an_expression, every=3)
    assert found.severity is Severity.NOTE
    assert found.evidence == {"traced": 0.5, "now": 0.5 * 0.9**3}
