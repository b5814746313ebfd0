"""The age of this process.

Standard library only.
"""

from __future__ import annotations

import os
import time

from smd_agent.descriptors import open_above


def process_age() -> float | None:
    """The seconds since this process began; None where the system does not tell."""
    try:
        descriptor = open_above("/proc/self/stat", os.O_RDONLY)
        try:
            ticks = int(os.read(descriptor, 4096).decode(errors="replace").rpartition(")")[2].split()[19])
        finally:
            os.close(descriptor)
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
