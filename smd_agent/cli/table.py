"""Plain text tables, and numbers as a line of bars."""

from __future__ import annotations

import itertools
import math
import sys

from smd_agent.printable import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GAP = "  "
# In characters; what fits on every terminal.
WIDTH = 80
_COUNT_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> Iterator[str]:
    """Yield a header and rows as lines, each column as wide as its widest text.

    Args:
        header: the columns' names.
        rows: as many texts each; long ones are cut.
        right: the columns, by name and separated by blanks, that are aligned to the right.
    """
    rows = [[shortened(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    at_right = [name in right.split() for name in header]
    for row in (header, *rows):
        yield aligned(row, widths, at_right)


def aligned(row: Sequence[str], widths: Sequence[int], at_right: Sequence[bool]) -> str:
    """Return a row as a line; long texts are cut."""
    cells = zip(map(shortened, row), widths, at_right, strict=True)
    return GAP.join(text.rjust(width) if right else text.ljust(width) for text, width, right in cells).rstrip()


def few_text(count: float | None) -> str:
    """Write a number of elements in four characters; ``-`` for None."""
    if count is None:
        return "-"
    for size, unit in _COUNT_UNITS:
        if count >= 0.9995 * size:
            return f"{count / size:.0f}{unit}"
    return f"{count:.0f}"


def share_text(share: float | None) -> str:
    """Write a share from 0 to 1 in four characters; ``-`` for None. Only none is 0%, and only all is 100%."""
    if share is None or share != share:
        return "-"
    if share not in (0, 1) and not 0.005 <= share < 0.995:
        return "<1%" if share < 0.5 else ">99%"
    return f"{share:.0%}"


_BARS, _FLAT, _NOT_FINITE = "▁▂▃▄▅▆▇█", "─", "×"
# For terminals without these characters.
_PLAIN_BARS, _PLAIN_FLAT, _PLAIN_NOT_FINITE = "_.-=+*#@", "-", "x"
# From so many times the smallest on, bars stand for logarithms.
_WIDE = 1000.0


def sparkline(numbers: Sequence[float | None], width: int) -> str:
    """Return numbers as bars: the smallest is the lowest one. NaN, Inf and None are crosses; equal numbers a line.

    Args:
        numbers: in order; where there are more than ``width``, the largest of several is shown, or a cross.
        width: in characters.
    """
    plain = not _can_print(_BARS + _FLAT + _NOT_FINITE)
    bars, flat, cross = (_PLAIN_BARS, _PLAIN_FLAT, _PLAIN_NOT_FINITE) if plain else (_BARS, _FLAT, _NOT_FINITE)
    cells = _cells(numbers, width)
    known = [number for number in cells if number is not None]
    if not known:
        return cross * len(cells)
    if min(known) > 0 and max(known) >= _WIDE * min(known):
        cells = [None if number is None else math.log(number) for number in cells]
        known = [number for number in cells if number is not None]
    low, span = min(known), max(known) - min(known)
    if not span:
        return "".join(cross if number is None else flat for number in cells)
    steps = [
        None if number is None else int((number / 2 - low / 2) / (span / 2) * (len(bars) - 0.01)) for number in cells
    ]
    return "".join(cross if step is None else bars[min(max(step, 0), len(bars) - 1)] for step in steps)


def _cells(numbers: Sequence[float | None], width: int) -> list[float | None]:
    count = min(len(numbers), width)
    ends = [number * len(numbers) // count for number in range(count + 1)] if count else [0]
    parts = [numbers[start:end] for start, end in itertools.pairwise(ends)]
    return [_largest(part) for part in parts]


def _largest(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    return max(known) if len(known) == len(numbers) else None


def _can_print(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
