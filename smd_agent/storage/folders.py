"""The content of a folder that may not be there, and when it was changed."""

from __future__ import annotations

import os
from pathlib import Path


def names_in(folder: Path) -> set[str]:
    """Return the names of what is in a folder; none when it is not there, or cannot be read."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def change_time(path: Path) -> int | None:
    """Return when a file or folder was changed, in nanoseconds since the epoch; None when it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
