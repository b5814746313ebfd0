"""Arguments that a call is given, as the source of the function that calls has it."""

from __future__ import annotations

import ast
from collections.abc import Container
from types import FrameType

from smd_agent.framework.program_lines import source_of


def gives(frame: FrameType, functions: Container[str], argument: str, place: int) -> bool | None:
    """Tell whether a call gives an argument, by name or by place; None where the source does not tell.

    Args:
        frame: of the function that calls.
        functions: names of what is called; of several such calls in the line, one that gives it is enough.
        argument, place: its name, and its number from 0 on.
    """
    source = source_of(frame.f_code)
    if source is None:
        return None
    tree, first = source
    line = frame.f_lineno - first + 1
    found = [
        _is_given(node, argument, place)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _name(node.func) in functions
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return any(found) if found else None


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_given(call: ast.Call, argument: str, place: int) -> bool:
    by_place = len(call.args) > place or any(isinstance(one, ast.Starred) for one in call.args)
    return by_place or any(one.arg in (argument, None) for one in call.keywords)
