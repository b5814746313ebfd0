"""The account that the finder keeps of trained parameters, with models of plain objects."""

from __future__ import annotations

import gc

import pytest

from smd_agent.framework.model_finder import ModelFinder
from smd_agent.framework.tracked_model import TrackedModel, free_name


class Parameter:
    pass


class Model:
    def __init__(self, *parts, number=1):
        self.inner = list(parts)
        self.own = [Parameter() for _ in range(number)]

    def parts(self):
        return [self, *(part for inner in self.inner for part in inner.parts())]

    def parameters(self):
        return [parameter for part in self.parts() for parameter in part.own]


class Tracked(TrackedModel):
    def parts(self):
        return self.model.parts() if self.model is not None else []

    def parameters(self):
        for parameter in self.model.parameters() if self.model is not None else ():
            yield "name", parameter


class Hook:
    def __init__(self):
        self.step = -1
        self.models = []
        self.has_registered = False

    def remove_model(self, tracked):
        self.models.remove(tracked)


class Finder(ModelFinder):
    def parts_of(self, model):
        return model.parts()

    def track(self, hook, model, inner):
        hook.models.append(Tracked(model))
        return hook.models[-1]


@pytest.fixture
def hook():
    return Hook()


@pytest.fixture
def finder(hook):
    return Finder(lambda: hook)


def test_parameters_are_looked_for_until_their_model_is_known(finder, hook):
    first, second = Model(number=2), Model()
    assert not finder.saw_training
    assert finder.expect([*first.parameters(), *second.parameters()])
    assert finder.params_without_model() == {*map(id, [*first.own, *second.own])}
    finder.adopt(first)
    assert finder.params_without_model() == {*map(id, second.own)}
    finder.adopt(second)
    assert finder.params_without_model() == set()
    # The model may go; its parameters have had one.
    hook.models.clear()
    assert finder.params_without_model() == set()
    assert finder.saw_training


def test_parameters_that_are_gone_are_not_looked_for(finder):
    model = Model()
    finder.expect(model.parameters())
    del model
    gc.collect()
    assert finder.params_without_model() == set()


def test_a_model_takes_the_place_of_those_inside_of_it(finder, hook):
    inner, other = Model(), Model()
    outer = Model(Model(inner))
    for model in (inner, other, outer):
        finder.adopt(model)
    assert [tracked.model for tracked in hook.models] == [other, outer]


def test_what_is_prepared_between_two_steps_begins_with_a_step_of_its_own(finder, hook):
    first, second, third = Model(), Model(), Model()
    finder.expect(first.parameters())
    assert finder.adopt(first).last == -1
    hook.step = 4
    finder.expect([*second.parameters(), *third.parameters()])
    assert finder.adopt(second).last == 4
    hook.step = 5
    assert finder.adopt(third).last == -1


@pytest.mark.parametrize("how", ["no hook", "a hook with models"])
def test_where_nothing_can_be_saved_the_search_ends(hook, how):
    model = Model()
    hook.models.append(Tracked(model))
    hook.has_registered = True
    finder = Finder(lambda: None if how == "no hook" else hook)
    finder.expect(Model().parameters())
    assert finder.should_have_found()
    assert finder.adopt(Model()) is None
    assert finder.stopped
    assert not finder.should_have_found()
    assert not finder.expect(Model().parameters())


def test_models_that_are_found_later_go_to_the_hook_that_has_taken_the_place_of_another():
    first, second, third = Hook(), Hook(), Hook()
    hooks = [first]
    finder = Finder(lambda: hooks[-1])
    models = [Model() for _ in range(4)]
    finder.expect(parameter for model in models for parameter in model.parameters())
    finder.adopt(models[0])
    hooks.append(second)
    finder.adopt(models[1])
    assert [len(hook.models) for hook in hooks] == [1, 1]
    # None is known any more, as after ``del_hook``.
    hooks.append(None)
    finder.adopt(models[2])
    assert len(second.models) == 2
    third.has_registered = True
    hooks.append(third)
    assert finder.adopt(models[3]) is None
    assert finder.stopped


def test_a_free_name_has_the_first_number_that_is_free():
    taken = set()
    for _ in range(3):
        taken.add(free_name("Net", taken.__contains__))
    assert sorted(taken) == ["Net", "Net_2", "Net_3"]
    assert free_name("Other", taken.__contains__) == "Other"
