"""Calls that nobody can tell have been made: what they change is put back, nothing that could be noticed happens."""

from __future__ import annotations

import os
import random
import sys
from collections import OrderedDict, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smd_agent.interpreter import unnoticed_calls
from smd_agent.interpreter.unnoticed_calls import Noticed, UnnoticedCalls

OWN = {unnoticed_calls.__file__}
COUNT = 0


def called(function, *arguments):
    calls = UnnoticedCalls(OWN.__contains__, lambda _: False, lambda _: False, {"forbidden"})
    calls.look(arguments)
    return calls.call(lambda: function(*arguments))


class Thing:
    kind = "thing"

    def __init__(self):
        self.number = 0
        self.items = [1, [2], {"a": 3}]
        self.held = {"x": deque([1]), "y": OrderedDict(a=1)}
        self.seen = {1, 2}

    def change(self):
        self.number += 1
        self.new = self.items
        self.items.append(4)
        self.items[1].clear()
        self.items[2]["a"] = 5
        self.held["x"].append(2)
        self.held["y"]["b"] = 2
        self.seen.add(3)
        self.items = []
        return self.number


def content(thing):
    return repr(vars(thing)), [id(value) for value in vars(thing).values()]


def test_what_is_changed_is_put_back():
    thing = Thing()
    before = content(thing)
    assert called(Thing.change, thing) == 1
    assert content(thing) == before
    assert sys.getprofile() is None


def sets_global():
    global COUNT
    COUNT += 1


def handles():
    try:
        print("x")
    except BaseException:
        return


def closure():
    found = 0

    def count():
        nonlocal found
        found += 1

    return count, lambda: found


def sets_class(thing):
    thing.__class__.kind = "changed"


IMPURE = {
    "print": lambda: print("noticed"),
    "random": lambda: random.random(),
    "environment": lambda: os.environ.update(NOTICED="1"),
    "global": sets_global,
    "handler": handles,
    "module": lambda: sys.stdout.write("noticed"),
    "exec": lambda: exec("1"),
    "import": lambda: __import__("this"),
}


@pytest.mark.parametrize("function", IMPURE.values(), ids=IMPURE)
def test_what_could_be_noticed_does_not_happen(function, capsys):
    before = random.getstate(), dict(os.environ), COUNT
    with pytest.raises(Noticed):
        called(function)
    assert capsys.readouterr().out == ""
    assert (random.getstate(), dict(os.environ), COUNT) == before
    assert sys.getprofile() is None


def test_variables_of_outer_functions_and_attributes_of_others_are_not_set():
    count, found = closure()
    with pytest.raises(Noticed):
        called(count)
    assert found() == 0
    with pytest.raises(Noticed):
        called(sets_class, Thing())
    assert Thing.kind == "thing"


def test_a_program_that_is_profiled_is_left_alone():
    sys.setprofile(lambda *_: None)
    try:
        with pytest.raises(Noticed):
            called(len, [])
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3)),
        st.tuples(st.just("pop"), st.integers(0, 3)),
        st.tuples(st.just("set"), st.integers(0, 3)),
        st.tuples(st.just("clear"), st.integers(0, 3)),
    )
)


def changed(lists, held, changes):
    for how, place in changes:
        one = lists[place]
        if how == "append":
            one.append(place)
            held[place] = one
        elif how == "pop" and one:
            one.pop()
            held.pop(place, None)
        elif how == "set" and one:
            one[0] = how
        elif how == "clear":
            one.clear()
            held.clear()


@given(st.lists(st.lists(st.integers()), min_size=4, max_size=4), CHANGES)
def test_any_changes_of_lists_and_dicts_are_put_back(lists, changes):
    held = {0: lists[0], 2: lists[1]}
    before = repr((lists, held))
    called(changed, lists, held, changes)
    assert repr((lists, held)) == before
    assert held[2] is lists[1]
