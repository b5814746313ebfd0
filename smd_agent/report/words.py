"""Numbers, times and counts as they stand in the page."""

from __future__ import annotations

import time

from smd_agent.printable import shortened


def count_of(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number_text(value: object) -> str:
    """Return a number with up to four digits, or a text as it is."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return shortened(str(value))


def time_text(seconds: float) -> str:
    """Return a moment, in seconds since the epoch, as date and time of UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "-"
