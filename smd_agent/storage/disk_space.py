"""Disk space: what saved steps will take, beside what is free."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from smd_agent import guard
from smd_agent.printable import rough_size_text

# A step of fewer bytes is not worth a line.
LARGE_STEP = 10**6
FIRST_STEPS = 1000


def tell_forecast(step_bytes: int, saved_steps: int, root: Callable[[], Path]) -> None:
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
    line = f"a saved step takes {rough_size_text(step_bytes)} on disk"
    if saved_steps > 1:
        line += f", the first {FIRST_STEPS:,} steps {rough_size_text(step_bytes * saved_steps)}"
    if free is None:
        return line
    if free < step_bytes * max(saved_steps, 1):
        return f"{line}, and {rough_size_text(free)} are free, which {-(-free // step_bytes):,} saved steps fill"
    return f"{line}; {rough_size_text(free)} are free"
