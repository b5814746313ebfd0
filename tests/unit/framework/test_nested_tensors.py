"""Tensors in nested values."""

from __future__ import annotations

from smd_agent.framework.nested_tensors import DEEPEST, nested, parts_of


def test_lists_tuples_and_mappings_are_walked_in_order():
    assert list(nested([1, (2, {"a": 3, "b": [4]}), None, "5", {6}], int)) == [1, 2, 3, 4]
    assert list(nested(7, int)) == [7]


def test_what_is_too_deep_is_left_out():
    value = 1
    for _ in range(DEEPEST):
        value = [value]
    assert list(nested(value, int)) == [1]
    assert list(nested([value], int)) == []


def test_a_value_that_holds_itself_ends():
    value = [1]
    value.append(value)
    assert list(nested(value, int)) == [1]


def test_other_containers_are_walked_by_a_function_of_the_framework():
    def parts(value):
        return sorted(value) if isinstance(value, set) else parts_of(value)

    assert list(nested([{2, 1}, 3], int, parts)) == [1, 2, 3]
