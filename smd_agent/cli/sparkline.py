"""Numbers as a line of bars, one character each."""

from __future__ import annotations

import itertools
import math
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
