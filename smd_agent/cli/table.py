"""Plain text tables."""

from __future__ import annotations

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
