"""What is known of parameters that several optimizers have."""

from __future__ import annotations

import json

import pytest

from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import BeforeOptimizer, NewParameters, Probes, StepEnd


class Parameter:
    pass


a, b, c = Parameter(), Parameter(), Parameter()


class Known:
    """Optimizers are lists here, of a group's name and its parameters."""

    def __init__(self):
        self.gradients, self.frozen, self.given = set(), set(), set()

    def groups_of(self, optimizer):
        return {optimizer[0]: optimizer[1:]}

    def can_be_trained(self, parameter):
        return parameter not in self.frozen

    def has_gradient(self, parameter):
        return parameter in self.gradients

    def was_given(self, parameter):
        return parameter in self.given


class Writer:
    def __init__(self):
        self.saved = {}

    def collections_due(self):
        return {"parameters"}

    def save_tensors(self, names, values):
        self.saved.update((name, json.loads(str(value[0]))) for name, value in zip(names, values, strict=True))


@pytest.fixture
def begin():
    """Return what begins a step with the parameters ``a``, ``b`` and ``c`` of one model."""
    told = {}

    def step(known):
        writer = Writer()
        facts = Probes([ParameterFacts(writer, told, known)])
        facts.emit(NewParameters("Net", None, [("a", a), ("b", b), ("c", c)]))
        return facts, writer.saved

    return step


def fact(optimizer, gradient, trained=True):
    return {"requires_grad": trained, "optimizer": optimizer, "gradient": gradient}


def test_a_parameter_is_as_its_own_optimizer_finds_it(begin):
    known = Known()
    facts, saved = begin(known)
    known.gradients = {b}
    facts.emit(BeforeOptimizer(["first", a]))
    known.gradients, known.frozen = {a, c}, {a, b}
    facts.emit(BeforeOptimizer(["second", b]))
    known.given.add(c)
    facts.emit(StepEnd())
    assert saved == {
        "parameters/Net": {"a": fact("first", False), "b": fact("second", False, trained=False), "c": fact(None, True)}
    }


def test_only_what_has_changed_is_told_again_and_nothing_without_an_update(begin):
    known = Known()
    facts, saved = begin(known)
    facts.emit(StepEnd())
    assert saved == {}
    known.given.add(c)
    for expected in (fact("another", False), None, fact(None, False)):
        facts, saved = begin(known)
        facts.emit(BeforeOptimizer(["only", a]))
        facts.emit(StepEnd())
        assert (saved["parameters/Net"]["c"] if saved else None) == expected
        if expected is None:
            known.given.clear()
