"""A profiler that wraps whatever the agent has replaced, each with ``functools.wraps`` and without, and counts calls.

In a run with the agent it asks the register, and notes in a file what it has found at each moment. In a run without,
the same attributes are wrapped by the names in that file. Its wrappers can be taken off again, in any order.
"""

from __future__ import annotations

import functools
import importlib
import json
from pathlib import Path
from types import ModuleType

_ABSENT = object()


class Profiler:
    """Wraps at moments that the program names.

    Args:
        file: what was found at each moment, as JSON.
        what: "found" asks the register and writes the file, "named" reads it, "nothing" wraps nothing.
        is_tracing: whether a call is one of a compiler's, not counted: the graph would hold the count.
    """

    def __init__(self, file, what, is_tracing=bool):
        self.is_tracing = is_tracing
        self.file = Path(file)
        self.what = what
        self.moments = json.loads(self.file.read_text()) if what == "named" else {}
        self.counts = {}
        self.wrappers = []

    def wrap(self, moment):
        """Wrap all that is replaced now."""
        if self.what == "nothing":
            return
        if self.what == "found":
            self.moments[moment] = _replaced()
            self.file.write_text(json.dumps(self.moments))
        for place, name in self.moments[moment]:
            for alike in (True, False):
                key = f"{moment} {place} {name} {alike}"
                self.wrappers.append(Wrapper(_owner(place), name, self.counts, key, alike, self.is_tracing))

    def take_off(self, how_many, order):
        """Take wrappers off, in the "first" or "last" order of putting them on."""
        for _ in range(min(how_many, len(self.wrappers))):
            self.wrappers.pop(0 if order == "first" else -1).take_off()

    def told(self):
        """Return the counts of calls that there were, as a line."""
        return " ".join(f"{key.replace(' ', '/')}={count}" for key, count in sorted(self.counts.items()) if count)


class Wrapper:
    """A wrapper that counts calls; once it is taken off it passes them on, in case another one covers it."""

    def __init__(self, owner, name, counts, key, alike, is_tracing):
        self.owner, self.name = owner, name
        self.before = vars(owner).get(name, _ABSENT)
        self.on = {"counting": 1}
        on = self.on
        original = getattr(owner, name)
        counts[key] = 0

        def wrapper(*args, **kwargs):
            if not is_tracing():
                counts[key] += on["counting"]
            return original(*args, **kwargs)

        if alike:
            wrapper = functools.wraps(original)(wrapper)
        self.installed = staticmethod(wrapper) if isinstance(self.before, staticmethod) else wrapper
        setattr(owner, name, self.installed)

    def take_off(self):
        self.on["counting"] = 0
        if vars(self.owner).get(self.name) is not self.installed:
            return
        if self.before is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


def _replaced():
    from smd_agent.framework.replaced_functions import replaced

    found = {}
    for entry in replaced():
        owner = entry.owner
        # Base classes come first: what a class gets from them is looked up when it is wrapped.
        depth = 0 if isinstance(owner, ModuleType) else len(owner.__mro__)
        place = owner.__name__ if depth == 0 else f"{owner.__module__}:{owner.__qualname__}"
        found.setdefault((place, entry.name), depth)
    return sorted(found, key=found.get)


def _owner(place):
    module, _, path = place.partition(":")
    try:
        owner = importlib.import_module(module)
    except ImportError:
        # Such as a part of an extension.
        parent, _, name = module.rpartition(".")
        owner = getattr(importlib.import_module(parent), name)
    return functools.reduce(getattr, path.split("."), owner) if path else owner
