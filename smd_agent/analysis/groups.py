"""The collection that a tensor is listed under: the smallest of those it belongs to."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping

from smd_agent.core.collection import Collection

UNGROUPED = "(in no collection)"


def members_of(names: Names[str], collections: Mapping[str, Collection]) -> dict[str, set[str]]:
    """Return which of these tensors belong to each collection; many names are matched in seconds."""
    return {name: set(filter(collection.matches, names)) for name, collection in collections.items()}


def collections_of(names: Names[str], members: Mapping[str, set[str]]) -> dict[str, str]:
    """Return the name of the smallest collection of each tensor; `UNGROUPED` for those in none."""
    found: dict[str, str] = {}
    for group in sorted(members, key=lambda name: (len(members[name]), name)):
        for name in members[group]:
            found.setdefault(name, group)
    return {name: found.get(name, UNGROUPED) for name in names}
