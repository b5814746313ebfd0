"""A finder of the agent's own libraries, for a package that lies in a folder of its own with them: a mounted volume.

That folder is not on the path, where its libraries would come before the program's, or be seen by it. So they are found
here, after all other finders: what the program has is used.
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
_DISTRIBUTIONS = ("wrapt", "numpy", "crc32c", "protobuf")


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
        if context.name not in _DISTRIBUTIONS:
            return ()
        from importlib.metadata import DistributionFinder, MetadataPathFinder

        return MetadataPathFinder.find_distributions(DistributionFinder.Context(name=context.name, path=[self._folder]))
