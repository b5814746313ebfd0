"""The files in which workers note with what they ran, and what saving took, as they lie in a run's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.formats.about import About, about_of
from smd_agent.formats.paths import ABOUT_FOLDER
from smd_agent.regular_file import read_text

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST_BYTES = 1 << 18


def read_about(root: Path) -> list[About]:
    """What the workers of a run have noted, in the order of their names; what cannot be read is left out."""
    folder = root / ABOUT_FOLDER
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []
    found = (_read(folder / name) for name in names)
    return [one for one in found if one is not None]


def _read(path: Path) -> About | None:
    try:
        return about_of(path.stem, read_text(path, largest=_LARGEST_BYTES))
    except OSError:
        return None
