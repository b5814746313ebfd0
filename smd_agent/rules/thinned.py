"""Things that come one by one, of which a bounded number is kept, evenly over all that came."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Thinned(Generic[T]):
    """A list that keeps every item, then every second one, then every fourth, so that it never has more than ``most``.

    Attributes:
        count: how many items came.
    """

    def __init__(self, most: int = 256) -> None:
        self.count = 0
        self._most = most
        self._every = 1
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Take in the next item."""
        if self.count % self._every == 0:
            self._items.append(item)
        self.count += 1
        if len(self._items) > self._most:
            del self._items[1::2]
            self._every *= 2

    def items(self) -> list[T]:
        """Return those that are kept, in their order."""
        return [*self._items]
