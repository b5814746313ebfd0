"""A forecast of what a run will take on disk, told when its first large step is saved."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from smd_agent import guard

# A step of fewer bytes is not worth a line.
LARGE_STEP = 10**6
FIRST_STEPS = 1000


def tell(step_bytes: int, saved_steps: int, root: Callable[[], Path]) -> None:
    """Say what the first ``FIRST_STEPS`` steps take, of which so many are saved, and whether the disk holds that.

    Args:
        step_bytes: of one saved step.
        saved_steps: of those first ones.
        root: gives the run's folder; asked on the thread that may wait for a disk.
    """
    try:
        free = shutil.disk_usage(root()).free
    except OSError:
        free = None
    guard.say(forecast(step_bytes, saved_steps, free))


def forecast(step_bytes: int, saved_steps: int, free: int | None) -> str:
    """The line; ``free`` is in bytes, None where nobody knows."""
    line = f"a saved step takes {size_text(step_bytes)} on disk"
    if saved_steps > 1:
        line += f", the first {FIRST_STEPS:,} steps {size_text(step_bytes * saved_steps)}"
    if free is None:
        return line
    if free < step_bytes * max(saved_steps, 1):
        return f"{line}, and {size_text(free)} are free, which {-(-free // step_bytes):,} saved steps fill"
    return f"{line}; {size_text(free)} are free"


def size_text(count: float) -> str:
    """A number of bytes with its unit, a power of 1000."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        del units[0]
    return f"{count:.0f} bytes" if units[0] == "bytes" else f"{count:.1f} {units[0]}"
