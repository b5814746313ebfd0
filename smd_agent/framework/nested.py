"""The tensors of what a model gets and returns: values in lists, tuples and mappings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

DEEPEST = 8


def parts_of(value: Any) -> Iterable[Any]:
    """What a list, tuple or mapping holds; nothing, if the value is none of them."""
    if isinstance(value, (list, tuple)):
        return value
    return value.values() if isinstance(value, Mapping) else ()


def nested(value: Any, kind: type[T], parts: Callable[[Any], Iterable[Any]] = parts_of) -> list[T]:
    """The instances of a class in a value, in order, at most ``DEEPEST`` levels below it.

    Args:
        value: an instance itself, or something that holds some.
        kind: the class.
        parts: gives what a container holds.
    """
    if isinstance(value, kind):
        return [value]
    found: list[T] = []
    _collect(value, kind, parts, DEEPEST, found)
    return found


def _collect(value: Any, kind: type[T], parts: Callable[[Any], Iterable[Any]], levels: int, found: list[T]) -> None:
    for part in parts(value):
        if isinstance(part, kind):
            found.append(part)
        elif levels > 1:
            _collect(part, kind, parts, levels - 1, found)
