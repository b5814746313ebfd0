"""The import name ``smdebug``: modules that hand out our names under those of the old library.

An old script imports ``smdebug.pytorch`` and gets what ``smd_agent.pytorch`` has. `smd_agent.alias.table` lists every
module that there is, and where its names come from. Nothing of ours is imported before it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

from smd_agent import guard
from smd_agent.alias.table import MODULES

ROOT = "smdebug"
# In the modules that are made here.
MARK = "__smd_agent__"


def root_spec(beside: Sequence[str] = ()) -> ModuleSpec:
    """The spec of ``smdebug`` itself, where no library of that name is installed.

    Args:
        beside: folders of that name which are no package by themselves; what lies in them can still be imported.
    """
    return _spec_of(ROOT, beside)


def hand_over(module: ModuleType) -> None:
    """Make an empty module that was imported as ``smdebug`` ours."""
    module.__path__ = []
    _fill(module)


class OldNames:
    """Finder and loader of the modules below ``smdebug``, as long as that is ours."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the table; None for all others."""
        if not fullname.startswith(f"{ROOT}.") or not is_ours(root := sys.modules.get(ROOT)):
            return None
        if fullname in MODULES:
            return _spec_of(fullname)
        if not getattr(root, "__path__", ()):
            tell_missing(f"no module {fullname}")
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the interpreter."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names.

        Raises:
            ImportError: it is a framework's, which is not installed.
        """
        _fill(module)


_names = OldNames()


def is_ours(module: ModuleType | None) -> bool:
    """True if a module is one of those that are made here."""
    return MARK in getattr(module, "__dict__", {})


def tell_missing(what: str) -> None:
    """Say once what of the old library there is not; the error that follows is Python's own."""
    guard.say_once(("smdebug", what), f"smdebug is not installed, smd_agent stands in for it and has {what}")


def _spec_of(name: str, beside: Sequence[str] = ()) -> ModuleSpec:
    spec = ModuleSpec(name, _names, origin=__file__)  # type: ignore[arg-type]
    # Shown where a name is missing: "cannot import name ... from 'smdebug' (this file)".
    spec.has_location = True
    if any(other.startswith(f"{name}.") for other in MODULES):
        spec.submodule_search_locations = [*beside]
    return spec


def _fill(module: ModuleType) -> None:
    name = module.__name__
    served = MODULES[name]
    needed = import_module(served.needs or __name__)
    listed = {*served.names, *(needed.__all__ if served.whole else ())}
    own = vars(module)

    def find(key: str) -> object:
        if key in served.names:
            home, _, attribute = served.names[key].partition(":")
            value: object = getattr(import_module(home), attribute or key)
        elif key in listed:
            value = getattr(needed, key)
        elif f"{name}.{key}" in MODULES and not MODULES[f"{name}.{key}"].of_framework:
            # The old library imported these by itself.
            return import_module(f"{name}.{key}")
        else:
            if not key.startswith("__"):
                tell_missing(f"no {key} in {name}")
            raise AttributeError(f"module {name!r} has no attribute {key!r}")
        own[key] = value
        return value

    own.update(
        {
            MARK: True,
            "__doc__": f"What smd_agent has of {name}.",
            "__all__": sorted(key for key in listed if not key.startswith("_")),
            "__getattr__": find,
            "__dir__": lambda: sorted({*own, *listed}),
        }
    )
    if name == ROOT and _names not in sys.meta_path:
        # First: a folder of the name of one of our modules, among those beside, is not what was asked for.
        sys.meta_path.insert(0, _names)
