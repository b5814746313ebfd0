"""The staging folder of a run that goes to a store alone: it is written there, and uploaded from there.

It goes when the program ends and the store has everything.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path

from smd_agent.formats.addresses import last_part
from smd_agent.stalled_disk import in_time

# How the name of the folder around it begins.
_AROUND = "smd_agent-"


def staging_folder(address: str) -> Path:
    """The path of a new one for the run at an address; nothing is made."""
    # Not from `random`, whose state belongs to the program.
    return Path(tempfile.gettempdir(), f"{_AROUND}{os.urandom(6).hex()}", last_part(address))


def make_around(folder: Path) -> None:
    """Make what is around the folder of a run that goes to a store alone, so that nobody else can look into it.

    Raises:
        OSError: that is not possible.
    """
    folder.parent.mkdir(mode=0o700, exist_ok=True)


def remove_with_around(folder: Path) -> None:
    """Remove a folder that a store has everything of, and what is around it unless there is more in there."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()


def is_staging_folder(folder: Path, name: str) -> bool:
    """True if a folder of this name has been made for a run's way by a process of this user's on this machine."""
    around = folder.parent
    named = around.parent == Path(tempfile.gettempdir()) and folder.name == name
    if not named or re.fullmatch(f"{_AROUND}[0-9a-f]{{12}}", around.name) is None:
        return False
    try:
        status = in_time(partial(os.lstat, around))
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
