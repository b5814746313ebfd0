"""The age of this process, and when others began.

Standard library only.
"""

from __future__ import annotations

import os
import time

from smd_agent.descriptors import open_above

# Of a process that has ended, of which only its parent has not been told.
_ENDED = ("Z", "X", "x")


def process_age() -> float | None:
    """The seconds since this process began; None where the system does not tell."""
    try:
        ticks = int(_fields("self")[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def start_of(pid: int) -> str | None:
    """The start of a process, in the system's ticks; None if it has ended, or where the system does not tell."""
    try:
        fields = _fields(pid)
        return None if fields[0] in _ENDED else fields[19]
    except (OSError, IndexError):
        return None


def _fields(pid: int | str) -> list[str]:
    """The numbers that the system tells of a process, behind its name."""
    descriptor = open_above(f"/proc/{pid}/stat", os.O_RDONLY)
    try:
        return os.read(descriptor, 4096).decode(errors="replace").rpartition(")")[2].split()
    finally:
        os.close(descriptor)
