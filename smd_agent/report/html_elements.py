"""HTML made of Python objects: every text is escaped, whoever wrote it, because nothing else can be put in.

Also numbers, times and counts as they stand in the page.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape

from smd_agent.printable import printable, shortened

_VOID = frozenset({"img", "input", "br", "meta"})


class Element:
    """An HTML element as text; only `element` makes one."""

    def __init__(self, text: str) -> None:
        self.text = text


Part = Element | str


def element(name: str, /, *parts: Part, **attributes: str | int | None) -> Element:
    """Return an element.

    Args:
        name: of the element.
        parts: its content; of a text, characters that would act on a terminal or turn its direction are written as in
            Python, and those that HTML knows are escaped.
        attributes: by name, with ``_`` for ``-`` and at the end of ``class_``; those that are None are left out.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    head = "".join(f' {key}="{_escaped(str(value))}"' for key, value in given.items())
    if name in _VOID:
        return Element(f"<{name}{head}>")
    return Element(f"<{name}{head}>{joined(parts)}</{name}>")


def joined(parts: Iterable[Part]) -> str:
    """Return the HTML text of parts, one after the other."""
    return "".join(part.text if isinstance(part, Element) else _escaped(part) for part in parts)


def table(header: Sequence[str], rows: Iterable[Sequence[Part]], numbers: str = "") -> Element:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        header: the columns' names.
        rows: as many cells each.
        numbers: the columns, by name and separated by commas, that are aligned to the right.
    """
    right = ["n" if name in numbers.split(",") else None for name in header]
    head = [element("th", name, scope="col", class_=kind) for name, kind in zip(header, right, strict=True)]
    body = [
        element("tr", *(element("td", cell, class_=kind) for cell, kind in zip(row, right, strict=True)))
        for row in rows
    ]
    inner = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", inner, class_="scroll", tabindex=0)


def _escaped(text: str) -> str:
    return escape(printable(text))


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
