"""Collections of a run that stay without a tensor, and the reasons, which are said once and stand in the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smd_agent.core.collection_keys import CollectionKeys

if TYPE_CHECKING:
    from smd_agent.core.collection_manager import CollectionManager


@dataclass
class Unfilled:
    """The collections that stay without a tensor, and the reasons that are known.

    Attributes:
        manager: has the reasons, which stand in the run.
        explained: names of collections that may stay without a tensor: nobody asked for them, or a line has said why.
    """

    manager: CollectionManager
    explained: set[str]
    _said: set[str] = field(default_factory=set)

    def note(self, collections: Iterable[str], reason: str) -> None:
        """Note in the run why collections stay without a tensor; the first reason of each stays."""
        known = self.manager.cannot_save
        self.manager.set_cannot_save({name: reason for name in collections if name not in known})

    def explain(self, collections: Iterable[str], reason: str) -> list[str]:
        """Note it, and that a line says so; the names of those of which none has said it."""
        names = [*collections]
        self.note(names, reason)
        new = [name for name in names if name not in self._said]
        self._said.update(new)
        self.explained.update(new)
        return new

    def unexplained(self, never_found: Iterable[str]) -> dict[str, list[str]]:
        """Those of some collections that stay so without a word, by the reason; an empty one where none is known."""
        # "default" and "all" hold what other collections leave over, which may well be nothing.
        known = {CollectionKeys.ALL, CollectionKeys.DEFAULT, *self.explained}
        reasons, found = self.manager.cannot_save, dict[str, list[str]]()
        for name in never_found:
            if name not in known:
                found.setdefault(reasons.get(name, ""), []).append(name)
        return found
