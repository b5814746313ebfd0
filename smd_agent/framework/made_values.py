"""Values that are not finite and the operations that have made them, in words."""

from __future__ import annotations

import linecache
from typing import NamedTuple

_ROWS = 8


class Place(NamedTuple):
    """The place of an operation: a line of the program's, and the innermost module."""

    file: str
    line: int
    module: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        where = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"{where}: {source}" if source else where


class Made(NamedTuple):
    """A value that is not finite, and the operation that has made it.

    Attributes:
        operation: such as ``aten.log``.
        backward_of: the name of the graph's node where it is one of a backward pass.
        kind: ``NaN``, ``inf`` or ``-inf``.
        given: the smallest and the largest value of the tensors that it was given first.
        rows: of the batch in which its result has such values, in words; empty where that is not known.
        place: None where it is not known.
        ending: the operation that has made a NaN of an infinity that this one has made.
    """

    operation: str
    backward_of: str
    kind: str
    given: list[tuple[float, float]]
    rows: str
    place: Place | None
    ending: str = ""


def in_words(made: Made, inside: str) -> str:
    """A value that is not finite, and the operation that has made it; ``inside``: of what, if no module is known."""
    behind = f" in {made.backward_of}" if made.backward_of else ""
    module = made.place.module if made.place is not None else ""
    where = f" ({made.place})" if made.place is not None and made.place.file else ""
    ending = f", of which {made.ending} made NaN" if made.ending else ""
    rows = f"; {made.rows} of the batch" if made.rows else ""
    what = f"{made.operation}{behind} in {module or inside} made {made.kind}{of_values(made.given)}"
    return f"{what}{ending}{where}{rows}"


def rows_in_words(rows: list[int], count: int = 0) -> str:
    """Rows as text, the first ones of many; ``count``: how many there are in all, if that is known."""
    if len(rows) == count > 1:
        return f"all {count} rows"
    more = f" and {len(rows) - _ROWS} more" if len(rows) > _ROWS else ""
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:_ROWS]))}{more}"


def of_values(spans: list[tuple[float, float]]) -> str:
    """Ranges of values as text that follows what was made of them."""
    return f" of values {' and '.join(f'from {low:.4g} to {high:.4g}' for low, high in spans)}" if spans else ""
