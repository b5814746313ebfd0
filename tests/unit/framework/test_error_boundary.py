"""Failures of ours in what stands before a library's functions: the program sees what the library does, once."""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager

import pytest

from smd_agent import guard, session
from smd_agent.core import failure_domains
from smd_agent.framework import error_boundary
from smd_agent.framework.replaced_functions import Patch, replace
from smd_agent.interpreter.hidden_frames import unseen

LINE = (
    "smd_agent: the first step may be incomplete: looking at the training failed (ValueError: ours); all else goes on\n"
)
WAYS = {
    "for good": lambda owner, make: replace(owner, "function", make, why="test"),
    "for a while": lambda owner, make: Patch(owner, "function", make, why="test"),
    "both": lambda owner, make: [
        way(owner, "function", either, why="test")
        for way in (replace, Patch)
        for either in (make, lambda original: lambda *args: original(*args))
    ],
}


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    """Take this file for one of the agent's; and switch off what is switched off here alone."""
    monkeypatch.setattr(error_boundary, "_ours", (__file__,))
    guard.lines.said.clear()
    yield
    monkeypatch.undo()
    session.forget()
    guard.strict = False


class Library:
    """Has a function, in a file of its own, which notes its calls."""

    def __init__(self, way, make):
        self.calls = []
        source = "def function(value):\n    calls.append(value)\n    return {'x': [value]}[value and 'x']\n"
        space = {"calls": self.calls}
        exec(compile(source, "library.py", "exec"), space)
        self.module = types.ModuleType("library")
        self.module.function = space["function"]
        WAYS[way](self.module, make)


def fail():
    raise ValueError("ours")


@contextmanager
def failing(at):
    if at == "entering":
        fail()
    yield
    if at == "leaving":
        fail()


def before(original):
    def call(value):
        fail()
        return original(value)

    return call


def after(original):
    def call(value):
        result = original(value)
        fail()
        return result

    return call


def finally_(original):
    def call(value):
        try:
            result = original(value)
        finally:
            fail()
        return result

    return call


def inner(original):
    @unseen
    def run(value):
        result = original(value)
        fail()
        return result

    def call(value):
        return run(value)

    return call


def around(original, at):
    def call(value):
        with failing(at):
            result = original(value)
        return result  # noqa: RET504 - what is tried

    return call


def own_work(original):
    def call(value):
        [].missing  # noqa: B018
        return original(value)

    return call


PLACES = {
    "before": before,
    "after": after,
    "finally": finally_,
    "inside": inner,
    "entering": lambda original: around(original, "entering"),
    "leaving": lambda original: around(original, "leaving"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_a_failure_is_told_and_the_function_is_called_once(way, place, capsys):
    library = Library(way, PLACES[place])
    assert library.module.function("a") == ["a"]
    assert library.calls == ["a"]
    assert capsys.readouterr().err == LINE
    assert not session.is_off()


def test_what_fails_in_each_saved_step_ends_the_capture(capsys):
    library = Library("for good", before)
    for _ in range(4):
        failure_domains.failures.saved_steps += 1
        assert library.module.function("a") == ["a"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
        "smd_agent: looking at the training failed (ValueError: ours) again and again; "
        "capture is off for the rest of this run"
    ]
    assert session.is_off()


def own_call(original):
    def call(value):
        int(None)
        return original(value)

    return call


def own_method(original):
    def call(value):
        {}.pop(value)
        return original(value)

    return call


def own_argument(original):
    def call(value):
        return original(
            value,
            *iter(None),
        )

    return call


OWN_WORK = {"AttributeError": own_work, "TypeError": own_call, "KeyError": own_method, "'NoneType'": own_argument}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", OWN_WORK)
def test_a_failure_of_the_replacements_own_work_is_told(way, error, capsys):
    if sys.version_info < (3, 11) and error != "AttributeError":
        pytest.skip("Python 3.10 does not tell where a call begins")
    library = Library(way, OWN_WORK[error])
    assert library.module.function("a") == ["a"]
    assert library.calls == ["a"]
    said = capsys.readouterr().err
    assert "looking at the training failed (" in said
    assert error in said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["after", "inside", "leaving", "finally"])
def test_what_the_function_raises_is_the_programs(way, place, capsys):
    library = Library(way, PLACES[place])
    with pytest.raises(KeyError) as caught:
        library.module.function("")
    assert library.calls == [""]
    assert caught.value.__context__ is None
    assert capsys.readouterr().err == (LINE if place == "finally" else "")


@pytest.mark.parametrize("way", WAYS)
def test_wrong_arguments_and_functions_without_frames_raise_to_the_program(way, capsys):
    library = Library(way, lambda original: lambda *args: original(*args))
    with pytest.raises(TypeError, match="positional argument"):
        library.module.function()
    library.module = types.ModuleType("library")
    library.module.function = int
    WAYS[way](library.module, lambda original: lambda *args: original(*args))
    with pytest.raises(ValueError, match="invalid literal"):
        library.module.function("x")
    assert capsys.readouterr().err == ""


def test_a_keyboard_interrupt_passes(capsys):
    def interrupted(original):
        def stop():
            raise KeyboardInterrupt

        def call(value):
            stop()
            return original(value)

        return call

    library = Library("for good", interrupted)
    with pytest.raises(KeyboardInterrupt):
        library.module.function("a")
    assert capsys.readouterr().err == ""
    assert not session.is_off()


def test_a_strict_run_ends_with_the_failure(capsys):
    guard.strict = True
    library = Library("for good", before)
    with pytest.raises(ValueError, match="ours"):
        library.module.function("a")
    assert capsys.readouterr().err == LINE
