"""Steps of loops of which only the gradients are seen: what is differentiated says where one begins."""

from __future__ import annotations

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.gradient_values import GradientValues
from smd_agent.framework.tape_steps import GradientSteps


class Variable:
    pass


class Hook:
    """Counts steps, and keeps what it is given."""

    def __init__(self):
        self.position = RunPosition(ModeClock(ModeKeys.TRAIN))
        self.saved = []

    def next_step(self, clock):
        self.position.begin(clock)

    def save_tensors(self, names, values):
        self.saved.append(dict(zip(names, values, strict=True)))

    def save_tensor_now(self, name, value):
        self.save_tensors([name], [value])


def steps_of(*reached):
    """The step in which each gradient belongs; given are its variable and the step its tape was opened in."""
    hook = Hook()
    steps = GradientSteps(hook)
    found = []
    for variable, opened in reached:
        steps.reach(variable, hook.position.step if opened is None else opened)
        found.append(hook.position.step)
    return found


def test_a_step_is_over_when_a_variable_is_differentiated_again():
    a, b = Variable(), Variable()
    assert steps_of((a, None), (a, None), (a, None)) == [0, 1, 2]
    # Two losses of one model or of two.
    assert steps_of((a, -1), (b, -1), (a, 0), (b, 0), (a, 1)) == [0, 0, 1, 1, 2]
    assert steps_of((a, None), (b, None), (a, None), (b, None)) == [0, 0, 1, 1]


def test_a_tape_that_was_opened_before_the_step_stays_in_it():
    a = Variable()
    assert steps_of((a, -1), (a, -1), (a, 0)) == [0, 0, 1]


def test_another_model_that_is_trained_after_the_first_begins_a_step():
    a, b, c = Variable(), Variable(), Variable()
    assert steps_of((a, None), (a, None), (c, None), (c, None)) == [0, 1, 2, 3]
    # Not all of the last step's have had their turn: it is one more of the same step.
    assert steps_of((a, None), (b, None), (a, None), (c, None), (b, None)) == [0, 0, 1, 1, 1]


def test_a_step_that_somebody_else_began_is_not_gone_on_with():
    hook, a, b = Hook(), Variable(), Variable()
    steps = GradientSteps(hook)
    steps.reach(a, -1)
    hook.next_step(hook.position.train)
    steps.reach(b, 1)
    assert hook.position.step == 2


class Names:
    def weight(self, variable):
        return f"w{variable}"

    def gradient(self, variable, number):
        return f"g{variable}_{number}"

    def loss(self, number):
        return f"l{number}"


def test_values_are_numbered_within_their_step():
    hook = Hook()
    values = GradientValues(hook, Names())
    hook.next_step(hook.position.train)
    values.weights([1, 2])
    values.gradients(["loss"], [(1, "a"), (2, None)])
    values.weights([2, 3])
    values.gradients(["other"], [(1, "b"), (2, "c")])
    assert hook.saved == [
        {"w1": 1, "w2": 2},
        {"l0": "loss"},
        {"g1_0": "a"},
        {"w3": 3},
        {"l1": "other"},
        {"g1_1": "b", "g2_0": "c"},
    ]
    hook.saved.clear()
    hook.next_step(hook.position.train)
    values.weights([1])
    values.gradients(["loss"], [(1, "a")])
    assert hook.saved == [{"w1": 1}, {"l0": "loss"}, {"g1_0": "a"}]
