"""One row of the table of costs, and the table as markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured cost.

    Args:
        what: the situation, in a few words.
        floor: what the ratio refers to, with its time.
        ours: our time.
        ratio: ours / floor.
        target: the ratio that must not be exceeded, None for a row that only informs.
        old: the same ratio for smdebug 1.0.34, None where it was not or cannot be measured.
    """

    what: str
    floor: str
    ours: str
    ratio: float
    target: float | None = None
    old: float | None = None


HEADINGS = ("what", "compared with", "ours", "ratio", "target", "smdebug 1.0.34")


def milliseconds(seconds: float) -> str:
    """Write a time the way the table shows it."""
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def heading() -> str:
    """Return the table's first two lines."""
    return _line(HEADINGS) + "\n" + _line(["---", "---", "---:", "---:", "---:", "---:"])


def line(row: Row) -> str:
    """Return a row as one line of markdown."""
    target = "" if row.target is None else f"≤ {row.target:g}"
    old = "" if row.old is None else _ratio(row.old)
    return _line([row.what, row.floor, row.ours, _ratio(row.ratio), target, old])


def _ratio(value: float) -> str:
    return f"{value:.4f}" if abs(value - 1) < 0.02 else f"{value:.3g}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
