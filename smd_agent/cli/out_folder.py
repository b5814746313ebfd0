"""The folder that a run would be written into: what is in it, whether it can be written, how much room there is."""

from __future__ import annotations

import itertools
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from smd_agent.cli.runs import state_of
from smd_agent.config import env
from smd_agent.config.keys import DEFAULT_OUT_DIR


@dataclass(frozen=True)
class OutFolder:
    """The folder of a run.

    Attributes:
        path: that was asked for.
        holds: what is in it, in words.
        goes_to: where the run would be written: another folder where that one holds a run already.
        free: room on its disk, in bytes; None where that cannot be told.
        problem: why no run can be written; empty if one can.
    """

    path: str
    holds: str
    goes_to: str
    free: int | None
    problem: str


def look_into(path: str) -> OutFolder:
    """Return what is known of a folder; nothing is made or written."""
    folder = Path(path)
    standing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    holds, goes_to = _contents(folder)
    free = _free(standing)
    place = standing if standing != folder or goes_to == path else folder.parent
    problem = ""
    if not standing.is_dir():
        problem = f"{standing} is no folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = f"{place} cannot be written by this user"
    elif free == 0:
        problem = f"the disk of {standing} is full"
    return OutFolder(path, holds, goes_to, free, problem)


def _contents(folder: Path) -> tuple[str, str]:
    if not folder.exists():
        return "it does not exist yet", str(folder)
    if not folder.is_dir():
        return "it is no folder", str(folder)
    state = state_of(folder)
    if state is None:
        try:
            empty = next(folder.iterdir(), None) is None
        except OSError as error:
            return f"it cannot be read: {error.strerror}", str(folder)
        return "it is empty" if empty else "it holds files, and no run", str(folder)
    return f"it holds a run ({state})", str(_another(folder))


def _another(folder: Path) -> Path:
    """The folder that a run of one worker gets where this one holds a run; see ``storage.run_folder``."""
    inside = env.in_training_job() or str(folder) == DEFAULT_OUT_DIR
    for number in itertools.count(2):
        other = folder / f"run-{number}" if inside else folder.with_name(f"{folder.name}-{number}")
        if not os.path.lexists(other):
            return other
    raise AssertionError("there are more numbers")


def _free(standing: Path) -> int | None:
    try:
        return shutil.disk_usage(standing).free
    except OSError:
        return None
