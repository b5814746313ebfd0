"""Functions that no warning names and no traceback shows."""

from __future__ import annotations

import sys
import traceback
import types
import warnings

import pytest

from smd_agent.framework.replaced_functions import Patch, replace
from smd_agent.interpreter.hidden_frames import is_unseen, leave_traceback, unseen

WAYS = {
    "for good": lambda owner, make: replace(owner, "function", make, why="test"),
    "for a while": lambda owner, make: Patch(owner, "function", make, why="test"),
    "both": lambda owner, make: (
        [replace(owner, "function", make, why="test") for _ in range(2)]
        + [Patch(owner, "function", make, why="test") for _ in range(2)]
    ),
}


def through(original):
    def call(value, *args):
        return original(value, *args)

    return call


@pytest.fixture(params=WAYS)
def owner(request):
    def function(value, *more):
        warnings.warn("here", stacklevel=2)
        if value == "fail":
            raise KeyError("mine")
        return value

    owner = types.ModuleType("library")
    owner.function = function
    WAYS[request.param](owner, through)
    return owner


def test_a_warning_names_the_caller(owner):
    with pytest.warns(UserWarning, match="here") as found:
        assert owner.function(1) == 1
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 shows the outermost function")
@pytest.mark.filterwarnings("ignore:here")
def test_a_traceback_has_the_programs_frames_alone(owner):
    with pytest.raises(KeyError) as caught:
        owner.function("fail")
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_a_traceback_has_the_programs_frames_alone", "function"]


def test_wrong_arguments_are_told_with_the_name_of_the_function(owner):
    with pytest.raises(TypeError, match=r"<locals>\.function\(\) missing 1 required positional argument: 'value'"):
        owner.function()


def test_a_failure_of_the_agents_own_keeps_its_frames():
    def broken():
        raise ValueError("ours")

    @unseen
    def outer():
        try:
            broken()
        except ValueError as error:
            leave_traceback(error)
            raise

    with pytest.raises(ValueError, match="ours") as caught:
        outer()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


def test_what_has_no_code_is_left_alone_and_marking_twice_is_harmless():
    assert unseen(len) is len
    once = unseen(lambda: None).__code__
    assert is_unseen(once)
    assert unseen(types.FunctionType(once, {})).__code__ is once
