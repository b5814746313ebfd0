"""The agent's own libraries, as they were installed: a file of the program's that bears such a name is no library.

A script may have a `wrapt.py`, a `google/` or a `crc32c.py` beside it, or on PYTHONPATH. Such a file is neither
executed for us nor kept from the program: where one hides a library, `sys.modules` shows the program none of ours.

A package on a mounted volume lies in a folder with its libraries. That folder is not on the path, where its libraries
would come before the program's, or be seen by it. So they are found here, after all other finders: what the program has
is used.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution, DistributionFinder
    from types import ModuleType

# protobuf is two packages in one that has no file of its own; NumPy's libraries are found by NumPy.
_NAMES = ("wrapt", "numpy", "crc32c", "google", "google.protobuf", "google._upb")
_DISTRIBUTIONS = {"wrapt": "wrapt", "numpy": "numpy", "crc32c": "crc32c", "google.protobuf": "protobuf"}


def own_library(name: str, *parts: str) -> ModuleType:
    """Import a library of ours.

    Args:
        name: its package.
        parts: modules of the package that are imported with it, as what is hidden finds no more of them later.

    Raises:
        ImportError: there is none, or it cannot be imported.
    """
    folder = _hidden_in(name)
    if folder is None:
        return _imported(name, parts)
    top = name.partition(".")[0]
    theirs = _take_out(top)
    finder = LibraryFinder(folder, (top, name))
    sys.meta_path.insert(0, finder)
    try:
        return _imported(name, parts)
    finally:
        sys.meta_path.remove(finder)
        _take_out(top)
        sys.modules.update(theirs)


def _imported(name: str, parts: Sequence[str]) -> ModuleType:
    # A program with the agent on PYTHONPATH is to find no module imported that it would not find by itself.
    from importlib import import_module

    library = import_module(name)
    for part in parts:
        import_module(f"{name}.{part}")
    return library


def _take_out(top: str) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
    return {name: sys.modules.pop(name) for name in names}


def _hidden_in(name: str) -> str | None:
    """The folder of a library in the place of which another file would be imported; None where none would."""
    found = _found_in(name)
    if found is None or _is_installed_in(found, name):
        return None
    folders = [*sys.path, os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    return next((folder for folder in folders if _is_installed_in(folder, name)), None)


def _is_installed_in(folder: str, name: str) -> bool:
    """Tell it by what installers leave beside a library, which no file of a program's has."""
    try:
        entries = os.listdir(folder or os.curdir)
    except (OSError, TypeError):
        # A program may put anything on sys.path.
        return False
    start = f"{_DISTRIBUTIONS[name]}-"
    return any(entry.startswith(start) and entry.endswith((".dist-info", ".egg-info")) for entry in entries)


def _found_in(name: str) -> str | None:
    """The folder from which an import takes a library, or the package that it is in; nothing is executed for it."""
    folder: str | None = None
    part, folders = "", None
    for word in name.split("."):
        part = f"{part}.{word}" if part else word
        if part in sys.modules:
            file, folders = _of_module(sys.modules[part])
        else:
            file, folders = _of_spec(_spec(part, folders))
        if file is None and not folders:
            # What a program has made by hand is in no folder.
            return os.devnull if sys.modules.get(part) is not None else folder
        # A folder without a file of its own may be in several places, of which the next part chooses one.
        place = folders[0] if folders else file
        folder = place and os.path.dirname(place)
        for _ in range(part.count(".")):
            folder = folder and os.path.dirname(folder)
    return folder


def _of_module(module: ModuleType) -> tuple[str | None, list[str] | None]:
    try:
        known = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None, None
    return known.get("__file__"), [*(known.get("__path__") or ())]


def _of_spec(spec: ModuleSpec | None) -> tuple[str | None, list[str] | None]:
    if spec is None:
        return None, None
    return spec.origin if spec.has_location else None, [*(spec.submodule_search_locations or ())]


def _spec(name: str, folders: Sequence[str] | None) -> ModuleSpec | None:
    for finder in tuple(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find_spec(name, folders, None) if find_spec else None
        if spec is not None:
            return spec
    return None


def find_beside(package: str) -> None:
    """Have the libraries that lie beside the package found, if there are any and the path does not lead there.

    Args:
        package: the folder of the package.
    """
    folder = os.path.dirname(package)
    if folder not in sys.path and any(os.path.isdir(os.path.join(folder, name)) for name in _NAMES[:3]):
        sys.meta_path.append(LibraryFinder(folder, _NAMES))


class LibraryFinder:
    """Finds libraries of one folder; behind all other finders, those that no other one has found.

    Args:
        folder: what holds them.
        names: the modules that are looked for there.
    """

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self._folder = folder
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a library; None for all else."""
        if fullname not in self._names:
            return None
        from importlib.machinery import PathFinder

        parent = fullname.rpartition(".")[0]
        return PathFinder.find_spec(fullname, [os.path.join(self._folder, parent) if parent else self._folder], target)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """Return what is known of a library that is asked for by name: some ask so for their own version."""
        if context.name not in _DISTRIBUTIONS.values():
            return ()
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        return MetadataPathFinder.find_distributions(DistributionFinder.Context(name=context.name, path=[self._folder]))
