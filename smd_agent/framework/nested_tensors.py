"""The tensors of what a model gets and returns: values in lists, tuples and mappings.

What their classes override is not called, and a container that holds itself is walked into once. Of other mappings than
dicts only those of installed libraries are asked for what they hold.
"""

from __future__ import annotations

from collections import UserDict, UserList
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from smd_agent.framework.plain_access import bases_of, elements_of, is_a, is_installed, pairs_of

T = TypeVar("T")

DEEPEST = 8
NOTHING: tuple[Any, ...] = ()
"""What something that is no container holds."""

# Containers that hold each other several times over would else take for ever.
_MOST = 65_536
_LISTS = (list, tuple, UserList)
_DICTS = (dict, UserDict)


def parts_of(value: Any) -> Iterable[Any]:
    """The content of a list, tuple or mapping; ``NOTHING``, if the value is none of them."""
    kind = type(value)
    if issubclass(kind, _LISTS):
        return elements_of(value)
    found = pairs_in(value)
    return NOTHING if found is NOTHING else [part for _, part in found]


def pairs_in(value: Any) -> Iterable[tuple[Any, Any]]:
    """The keys and values of a mapping; ``NOTHING`` of anything else."""
    kind = type(value)
    if issubclass(kind, _DICTS):
        return pairs_of(value)
    if any(base is Mapping for base in bases_of(kind)) and is_installed(kind):
        return [*value.items()]
    return NOTHING


def nested(value: Any, kind: type[T], parts: Callable[[Any], Iterable[Any]] = parts_of) -> list[T]:
    """The instances of a class in a value, in order, at most ``DEEPEST`` levels below it.

    Args:
        value: an instance itself, or something that holds some.
        kind: the class.
        parts: gives what a container holds, and of anything else ``NOTHING``.
    """
    if is_a(value, kind):
        return [value]
    search = _Search(kind, parts)
    search.collect(parts(value), DEEPEST, (id(value),))
    return search.found


class _Search:
    """One search.

    Args:
        kind: the class of what is found.
        parts: gives what a container holds.
    """

    def __init__(self, kind: type[Any], parts: Callable[[Any], Iterable[Any]]) -> None:
        self.found: list[Any] = []
        self._kind = kind
        self._parts = parts
        self._left = _MOST

    def collect(self, held: Iterable[Any], levels: int, above: tuple[int, ...]) -> None:
        """Look through what a container holds; ``above`` are the ids of it and of those around it."""
        kind, parts, found = self._kind, self._parts, self.found
        for part in held:
            if issubclass(type(part), kind):
                found.append(part)
            elif levels > 1 and self._left > 0:
                inner = parts(part)
                if inner is not NOTHING and id(part) not in above:
                    self._left -= 1
                    self.collect(inner, levels - 1, (*above, id(part)))
