"""Values by objects of the program, which are known by identity alone: neither hash nor equality is asked of them."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Reference(weakref.ref[K]):
    """A weak reference of ours alone.

    Of plain ones, Python gives the same to all who ask for one, and keeps in it the hash that has been asked of it:
    while we hold that, a class's own hash is used less often than without us.
    """

    __slots__ = ()


def to_nothing() -> None:
    """The reference that refers to nothing yet."""


class WeakIdentityMap(Generic[K, V]):
    """A value for each of some objects, which are held weakly."""

    __slots__ = ("__weakref__", "_found")

    def __init__(self) -> None:
        self._found: dict[int, tuple[weakref.ref[Any], V]] = {}

    def get(self, key: K) -> V | None:
        """The value of an object, None if it has none."""
        found = self._found.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def set(self, key: K, value: V) -> V:
        """Give an object a value, which is returned."""
        number, own = id(key), weakref.ref(self)

        def forget(gone: weakref.ref[Any]) -> None:
            known = own()
            # Another object may have got the number.
            if known is not None and (found := known._found.get(number)) is not None and found[0] is gone:
                del known._found[number]

        self._found[number] = weakref.ref(key, forget), value
        return value

    def pairs(self) -> list[tuple[K, V]]:
        """The objects that are alive, and their values."""
        found = [(reference(), value) for reference, value in [*self._found.values()]]
        return [(key, value) for key, value in found if key is not None]
