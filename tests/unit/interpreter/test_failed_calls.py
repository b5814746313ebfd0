"""The instruction at which a function has failed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from smd_agent.interpreter.failed_calls import is_own_work

OWN = {
    "attribute": "[].missing",
    "item": "{}[1]",
    "operator": "1 + ''",
    "name": "missing",
    "unpacking": "a, b = [1]",
}
OWN_CALLS = {
    "global": "int('')",
    "global with arguments": "int('1',\n    base='x')",
    "method of a container": "[].pop()",
    "method of a string": "'a'.index('b')",
    "nested": "len(int('x'))",
}
GIVEN = {
    "argument": "given(-1)",
    "keywords": "given(x=1)",
    "attribute of it": "holder.given(-1)",
    "unpacked": "given(*args)",
    "in a line with others": "[given(-1), int('')]",
    "raised": "raise ValueError('x')",
}


def failed_at(line):
    """The traceback entry of a function that has failed at a line, in which C functions are called."""
    space: dict = {}
    exec(compile(f"def function(given, holder, args):\n  {line}\n", "function.py", "exec"), space)
    # Of a function without a frame.
    given = b"".__class__
    try:
        space["function"](given, SimpleNamespace(given=given), (-1,))
    except Exception as error:
        found = error.__traceback__.tb_next
        assert found.tb_frame.f_code.co_name == "function"
        assert found.tb_next is None
        return found
    raise AssertionError("it has not failed")


@pytest.mark.parametrize("line", OWN.values(), ids=OWN)
def test_what_it_does_itself(line):
    assert is_own_work(failed_at(line))


@pytest.mark.parametrize("line", OWN_CALLS.values(), ids=OWN_CALLS)
def test_calls_of_its_own(line):
    assert is_own_work(failed_at(line)) == (sys.version_info >= (3, 11))


@pytest.mark.parametrize("line", GIVEN.values(), ids=GIVEN)
def test_what_it_was_given_and_what_it_raises(line):
    assert not is_own_work(failed_at(line))
