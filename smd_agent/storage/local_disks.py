"""The kind of disk that a folder is on: one of this machine, or one that a server or a program stands behind.

A write to the first kind is one to memory, unless that is full. A write to the other kind may wait for whoever stands
behind it, for ever if that has gone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from smd_agent.regular_file import open_to_read

_MOUNTS = "/proc/self/mounts"
_MOST_BYTES = 1 << 20
_LOCAL = frozenset(("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"))


def is_local(folder: Path) -> bool:
    """True if the folder is on a disk of this machine, or the system does not say so."""
    try:
        with open_to_read(_MOUNTS) as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError:
        return True
    whole = os.fsencode(os.path.realpath(folder)) + b"/"
    mounts = (line.split(b" ") for line in lines)
    kinds = {_name(parts[1]).rstrip(b"/") + b"/": parts[2] for parts in mounts if len(parts) > 2}
    own = max((name for name in kinds if whole.startswith(name)), key=len, default=None)
    return own is not None and kinds[own].decode("ascii", "replace") in _LOCAL


def _name(escaped: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), escaped)
