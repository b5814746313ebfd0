"""Code that calls one function and uses local variables."""

from __future__ import annotations

import pytest

from smd_agent.interpreter.pure_code import calls_only

PURE = {
    "positions": "a, b = graph_0(a, b)\nreturn a",
    "keywords": "return graph_0(a, out=b)",
    "unpacked": "return graph_0(*a)",
    "harmless": "n = a.call_size(0)\nreturn graph_0(a, n)",
    "branch": "if a is None:\n    return b\nreturn graph_0(a)",
    "many variables": "c = a\nd = b\na, b = d, c\ndel c\nreturn graph_0(a, b)",
}
IMPURE = {
    "nothing": "return a",
    "another call": "print(a)\nreturn graph_0(a)",
    "a method": "a.append(b)\nreturn graph_0(a)",
    "twice": "return graph_0(graph_0(a))",
    "keyword call": "dict(a=b)\nreturn graph_0(a)",
    "unpacked call": "print(*a)\nreturn graph_0(a)",
    "attribute": "a.out = graph_0(b)",
    "item": "a[0] = graph_0(b)",
    "slice": "a[b:b] = graph_0(b)",
    "global": "global c\nc = graph_0(b)",
    "deleted attribute": "del a.out\nreturn graph_0(b)",
    "deleted item": "del a[0]\nreturn graph_0(b)",
}


def code(body):
    space: dict = {}
    exec("def function(a, b):\n" + "".join(f"    {line}\n" for line in body.splitlines()), space)
    return space["function"].__code__


@pytest.mark.parametrize("body", PURE.values(), ids=PURE)
def test_it_does_nothing_else(body):
    assert calls_only(code(body), "graph_", ["call_size"])


@pytest.mark.parametrize("body", IMPURE.values(), ids=IMPURE)
def test_it_does_something_else(body):
    assert not calls_only(code(body), "graph_", ["call_size"])
