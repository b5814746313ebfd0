"""Objectives of the program's own, and the weights of rows, which XGBoost leaves to them.

The code of an objective is read and not run: an objective that reads weights has to name something of weights, or to
hold an array of as many numbers as there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import xgboost

from smd_agent.framework.plain_access import held_by_module, is_a

_OF_WEIGHTS = ("weight", "get_float_info")
# A sample weight is often called so in an objective.
_SHORT = ("w", "ws", "sw", "wt", "wts")
# They have functions of numbers alone.
_OF_NUMBERS = ("numpy", "scipy", "math", "builtins")
_HARMLESS = (int, float, complex, bool, str, bytes, type(None))
_MOST_FUNCTIONS = 50


def facts_of_objective(objective: Any, data: xgboost.DMatrix) -> dict[str, float]:
    """The facts of the argument ``obj`` of a training, where rows have weights that differ.

    Returns:
        ``ignores_weights``: 1 if nothing that the objective can reach reads weights, else 0. Nothing of an objective
        that is no function.
    """
    if not is_a(objective, FunctionType):
        return {}
    weights = np.asarray(data.get_weight())
    if weights.size != data.num_row() or not np.ptp(weights):
        return {}
    return {"ignores_weights": int(_ignores_weights(objective, data.num_row()))}


def _ignores_weights(objective: FunctionType, rows: int) -> bool:
    waiting, seen = [objective], {objective}
    while waiting:
        function = waiting.pop()
        if any(_is_of_weights(name) for name in _names_in(function.__code__)):
            return False
        for value in _values_of(function):
            if is_a(value, FunctionType):
                if value not in seen and not _is_of_numbers(value.__globals__.get("__name__")):
                    seen.add(value)
                    waiting.append(value)
            elif not _is_harmless(value, rows):
                return False
        if len(seen) > _MOST_FUNCTIONS:
            return False
    return True


def _is_of_numbers(module: Any) -> bool:
    return is_a(module, str) and module.partition(".")[0] in _OF_NUMBERS


def _names_in(code: CodeType) -> Iterator[str]:
    """All names and texts in a function's code, of whatever kind."""
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    for constant in code.co_consts:
        if is_a(constant, CodeType):
            yield from _names_in(constant)
        elif is_a(constant, str):
            yield constant


def _is_of_weights(name: str) -> bool:
    lower = name.lower()
    return lower in _SHORT or any(word in lower for word in _OF_WEIGHTS)


def _values_of(function: FunctionType) -> Iterator[Any]:
    """The values that a function's code can reach by a name, but those of libraries."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        # There may be nothing in it yet.
        with suppress(ValueError):
            yield cell.cell_contents
    names = {*_names_in(function.__code__)}
    for name in names & {*function.__globals__}:
        value = function.__globals__[name]
        if is_a(value, ModuleType):
            own = held_by_module(value)
            yield from () if _is_of_numbers(own.get("__name__")) else (own[one] for one in names & {*own})
        else:
            yield value


def _is_harmless(value: Any, rows: int) -> bool:
    """True if no weights of rows can be in a value."""
    if type(value) is np.ndarray:
        return bool(value.dtype != object and value.size < rows)
    if type(value) in (tuple, list):
        return len(value) < rows and all(type(one) in _HARMLESS for one in value)
    return type(value) in (*_HARMLESS, np.ufunc, type(len)) or is_a(value, (np.number, np.bool_))
