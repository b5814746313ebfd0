"""Counts of references to an object (``sys.getrefcount``), by which the program is seen to have let it go.

How many are counted of an object that nobody else holds is different in CPython 3.10 to 3.14, so it is never a number:
what is counted is compared with the count of an object of ours, by the same function. An interpreter that does not
count references has none of ``sys.getrefcount``.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace


def references(thing: object) -> int:
    """The count of an argument."""
    return sys.getrefcount(thing)


def has_only_a_cycle(reference: Callable[[], object]) -> bool:
    """True if the object of a weak reference is held by nothing but one that it holds, until garbage is collected."""
    return _references(reference) == _OF_A_CYCLE


def _references(reference: Callable[[], object]) -> int:
    # In one expression: a variable would be one more.
    return sys.getrefcount(reference())


class _Cycle:
    def __init__(self) -> None:
        self.held = SimpleNamespace(holder=self)


def _references_of_a_cycle() -> int:
    reference = weakref.ref(_Cycle())
    found = _references(reference)
    cycle = reference()
    if cycle is not None:
        del cycle.held
    return found


_OF_A_CYCLE = _references_of_a_cycle()
