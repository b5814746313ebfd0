"""A search among all objects that are alive."""

from __future__ import annotations

from smd_agent.interpreter.living_objects import living


class Kind:
    pass


class Derived(Kind):
    pass


class Pretender:
    @property
    def __class__(self):
        raise AssertionError("a proxy was asked for its class")


class Unhashable(type):
    __hash__ = None


class Other(metaclass=Unhashable):
    def __init__(self):
        self.held = []


def test_objects_of_a_class_and_of_derived_ones_are_found():
    found = [Kind(), Derived()]
    others = [Pretender(), Other()]
    assert {id(one) for one in living(Kind)} == {id(one) for one in found}
    assert [*map(id, living(Other))] == [id(others[1])]


def test_what_has_ended_is_not_found():
    one = Derived()
    del one
    assert living(Kind) == []
