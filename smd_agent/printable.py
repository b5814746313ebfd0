"""Text of files and users as it may stand in a line: nothing in it acts on a terminal, and it has an end.

Standard library only, and below everything else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_NAME = 200
_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB")


def printable(text: str) -> str:
    r"""Return a text with control characters, direction marks and the like written as in Python, such as ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode() for one in text)


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text as `printable` writes it, with ``...`` in place of what is beyond ``longest`` characters."""
    # Cut first: what is left out may be large.
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 3] + "..."


def shortened_within(name: str, width: int) -> str:
    """Return a name with ``..`` in place of what is too much inside of it: names mostly differ at their ends."""
    name = printable(shortened(name))
    if len(name) <= width:
        return name
    head = (width - 2) // 3
    return f"{name[:head]}..{name[len(name) - (width - 2 - head) :]}"


def count_of(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some_of(names: Sequence[str], most: int) -> str:
    """List the first names, and count the others."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def number_text(value: float | None) -> str:
    """Write a number in eight characters, with up to four digits; ``-`` for None."""
    if value is None:
        return "-"
    texts = (f"{value:.{digits}g}" for digits in (4, 3, 2))
    return next((text for text in texts if len(text) <= 8), f"{value:.1g}")


def size_text(size: float) -> str:
    """Write a number of bytes with three digits and a unit; units are powers of 1000."""
    for unit in _SIZE_UNITS:
        if size < 999.5 or unit == _SIZE_UNITS[-1]:
            break
        size /= 1000
    return f"{size:.3g} {unit}"


def rough_size_text(count: float) -> str:
    """Write a number of bytes with one decimal and a unit; units are powers of 1000."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        del units[0]
    return f"{count:.0f} bytes" if units[0] == "bytes" else f"{count:.1f} {units[0]}"


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape as 16x3x3x3; a scalar as ()."""
    return "x".join(map(str, shape)) or "()"
