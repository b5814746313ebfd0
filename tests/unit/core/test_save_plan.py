"""A plan that replaces another one, and what a plan remembers."""

from __future__ import annotations

from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.save_plan import SavePlan


def test_a_new_plan_knows_which_collections_came_up_before():
    first, second, third = (Collection(name, [f"^{name}"], save_config=SaveConfig(save_interval=1)) for name in "abc")
    plan = SavePlan([first, second])
    assert plan.how("a_tensor", plan.due(ModeKeys.TRAIN, 0)) is not None
    assert plan.never_found() == ["b"]
    # In another order, with one more, of which nothing was to be saved so far.
    new = SavePlan([third, second, first], plan)
    assert new.never_found() == ["b"]
    assert SavePlan([third, second, first]).never_found() == []
    new.due(ModeKeys.TRAIN, 1)
    assert new.never_found() == ["c", "b"]


def test_names_that_are_included_are_looked_up_again_when_one_is_placed():
    some = Collection("some", ["^a"], save_config=SaveConfig(save_interval=7))
    plan = SavePlan([some])
    names = frozenset({"a_tensor", "b_tensor"})
    assert plan.included(names) == {"a_tensor"}
    assert plan.included(frozenset({"b_tensor"})) == set()
    some.add_tensor_name("b_tensor")
    plan.forget("b_tensor")
    assert plan.included(names) == names


def test_what_comes_again_in_each_step_is_planned_once(monkeypatch):
    monkeypatch.setattr("smd_agent.core.save_plan._CACHED_GROUPS", 8)
    plan = SavePlan([Collection("all", [".*"], save_config=SaveConfig(save_interval=1))])
    due = plan.due(ModeKeys.TRAIN, 0)
    names = [(f"layer{number}_output_0",) for number in range(10)]
    known = [{name: plan.group(name, due) for name in names} for _ in range(3)]
    # Of more groups than are remembered most are remembered all the same.
    assert sum(known[1][name] is known[2][name] for name in names) == 7
    assert known[1] == known[2]
