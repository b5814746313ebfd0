"""The state of a run: finished, going on or cut off, as far as its folder tells."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from smd_agent.formats import paths
from smd_agent.storage import claim

if TYPE_CHECKING:
    from pathlib import Path


def describe_state(root: Path, last_file: Path | None) -> str:
    """Say in a few words what has become of a run.

    Args:
        root: the run's folder.
        last_file: the file it wrote last, None when there is none.
    """
    if (root / paths.END_MARKER).exists():
        return "finished"
    owner = claim.Claim(root).owner()
    if owner is None or owner.get("host") != socket.gethostname():
        return f"not finished, {_last_sign(last_file)}"
    if claim.alive(owner):
        return f"running as process {owner['pid']}, {_last_sign(last_file)}"
    return f"was cut off: process {owner['pid']} is gone, {_last_sign(last_file)}"


def _last_sign(last_file: Path | None) -> str:
    if last_file is None or not last_file.exists():
        return "no step written"
    return f"last step written {_ago(time.time() - os.stat(last_file).st_mtime)} ago"


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
