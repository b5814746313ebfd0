"""Room on the stack next to the recursion limit."""

from __future__ import annotations

import sys

import pytest

from smd_agent import guard
from smd_agent.interpreter import stack_room
from smd_agent.interpreter.stack_room import has_room, in_room


def near_the_limit(action):
    """Call an action with thirty places left on the stack."""
    try:
        _deep(30, bool)
    except RecursionError:
        return action()
    return near_the_limit(action)


def _deep(levels, action):
    return action() if levels == 0 else _deep(levels - 1, action)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(guard.lines, "said", set())
    monkeypatch.setattr(guard.lines, "unsaid", [])


def test_where_there_is_no_room_a_line_waits_for_the_next_one(capsys):
    assert has_room()
    assert not near_the_limit(has_room)
    assert not near_the_limit(has_room)
    assert capsys.readouterr().err == ""
    guard.say("another line")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("smd_agent: the training runs within 100 calls of sys.getrecursionlimit()")
    assert lines[1:] == ["smd_agent: another line"]


@pytest.mark.parametrize("where", [near_the_limit, lambda action: action()])
def test_a_function_of_ours_finds_room_and_leaves_the_limit_as_it_was(where, capsys):
    before, called = sys.getrecursionlimit(), []

    def ours(*args):
        _deep(60, bool)
        called.append(args)

    where(lambda: in_room(ours, 1, 2))
    assert called == [(1, 2)]
    assert sys.getrecursionlimit() == before


def test_the_limit_is_as_it_was_after_a_failure_and_as_the_program_has_set_it_meanwhile():
    before = sys.getrecursionlimit()
    with pytest.raises(ZeroDivisionError):
        near_the_limit(lambda: in_room(lambda: 1 // 0))
    assert sys.getrecursionlimit() == before
    try:
        near_the_limit(lambda: in_room(sys.setrecursionlimit, before + 500))
        assert sys.getrecursionlimit() == before + 500
    finally:
        sys.setrecursionlimit(before)


def test_a_look_that_fails_costs_nothing_else(monkeypatch):
    called = []
    monkeypatch.setattr(stack_room, "_descend", lambda calls: 1 // 0)
    assert has_room()
    in_room(called.append, 1)
    assert called == [1]
