"""The printer of all commands: the one way to stdout of what comes from a run or a user.

Also plain text tables, numbers as a line of bars, and progress.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from smd_agent.address_secrets import without_secrets
from smd_agent.printable import printable, shortened

# In seconds: what is done sooner needs no progress, and nobody reads faster.
_FIRST_AFTER, _AGAIN_AFTER = 1.0, 0.2
# A screen of its own, which leaves what the terminal has shown before as it was; and back to that.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def emit(line: str = "") -> None:
    """Print a line; what would act on the terminal, or is not in its character set, is written as in Python."""
    print(_fitting(line))


def emit_all(lines: Iterable[str]) -> None:
    """Print lines, each as soon as it is known."""
    for line in lines:
        emit(line)


def emit_json(content: object) -> None:
    """Print what a command has found as one JSON object; of a dataclass its attributes."""
    emit_all(json.dumps(content, indent=2, default=vars).splitlines())


def facts(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield labels and texts as lines, the texts below each other."""
    for label, text in rows:
        yield f"{label:<{width}}{text}"


def _fitting(line: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return without_secrets(printable(line)).encode(encoding, "backslashreplace").decode(encoding)


@contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """Say on a terminal's stderr how far something is that takes longer than a second; the line goes away at its end.

    Args:
        words: with two places ``{}``, for how many are done and how many there are.
    """
    shown, due = "", time.monotonic() + _FIRST_AFTER

    def tell(done: int, total: int) -> None:
        nonlocal shown, due
        now = time.monotonic()
        if now >= due and sys.stderr.isatty():
            shown, due = words.format(done, total), now + _AGAIN_AFTER
            sys.stderr.write(f"\r{shown}")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write(f"\r{' ' * len(shown)}\r")
            sys.stderr.flush()


@contextmanager
def own_screen() -> Iterator[None]:
    """Have a terminal show a screen of its own, and what it has shown before at the end."""
    sys.stdout.write(_ENTER)
    try:
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def draw(lines: Sequence[str]) -> None:
    """Draw the first lines that fit over what the screen shows."""
    columns, rows = shutil.get_terminal_size()
    shown = [_fitting(line)[:columns] for line in lines]
    if len(shown) > rows - 1:
        shown = [*shown[: rows - 2], f"... {len(lines) - rows + 2} more lines"]
    sys.stdout.write(_HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN)
    sys.stdout.flush()


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
