"""One table of the series as it is filled: its columns, its rows as bytes, and which of them are left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.series import ABSENT, NARROW, PARAMETERS_TABLE, WIDE, Header, row_packer

LOSS = "series/loss"
# A program that names its numbers anew in each step would have a file for each step.
MOST_LAYOUTS = 100


class Thinning:
    """The choice of the rows that are kept: of a table that grows, every second one, then every fourth, and so on.

    A row whose loss is not finite is kept where that of the last one was.

    Args:
        limit: size of the table in bytes: from half of it on every second row is kept, from three quarters on every
            fourth, and so on: it gets hardly larger, however long the run is.

    Attributes:
        stride: one row of so many is kept.
    """

    def __init__(self, limit: int) -> None:
        self.stride = 1
        self._limit = limit
        self._size = 0
        self._next_at = limit // 2
        self._count = 0
        self._was_finite = True

    def leaves_out(self, loss: float) -> bool:
        """True if the next row is left out; ``loss`` is ``ABSENT`` if it has none."""
        self._count += 1
        is_finite = loss is ABSENT or math.isfinite(loss)
        if self._count % self.stride and (is_finite or not self._was_finite):
            return True
        self._was_finite = is_finite
        return False

    def grow(self, size: int) -> None:
        """Take note of so many bytes more."""
        self._size += size
        while self._size >= self._next_at and self._next_at < self._limit:
            self.stride *= 2
            self._next_at = self._limit - self._limit // (2 * self.stride)


class SeriesTable:
    """Rows of one table on their way to files.

    Args:
        table: its name.
        limit: its size in bytes, see ``Thinning``.

    Attributes:
        columns: of the rows that come out.
        names: of the values that come in, as the last ``fit`` has said.
        thinning: of the rows.
    """

    def __init__(self, table: str, limit: int) -> None:
        self.columns: tuple[str, ...] = ()
        self.names: tuple[str, ...] | None = None
        self.thinning = Thinning(limit)
        self._table = table
        self._number = NARROW if table == PARAMETERS_TABLE else WIDE
        self._layouts = 0
        # Where each column's number stands in the values; None where they are the columns.
        self._places: list[int] | None = None
        self._loss_at = -1
        self._pack = row_packer(self.header("", "", -1))
        self._mode: tuple[ModeKeys, int] = ModeKeys.TRAIN, ModeKeys.TRAIN.value

    def header(self, worker: str, start: str, after: int) -> Header:
        """The header of a file that begins with the next row."""
        return Header(worker, self._table, self.columns, self._number, start, after)

    def fit(self, names: tuple[str, ...]) -> bool:
        """Make ready for rows of these names; True if the columns have changed."""
        new = tuple(name for name in dict.fromkeys(names) if name not in {*self.columns})
        has_changed = bool(new) and self._layouts < MOST_LAYOUTS
        if has_changed:
            self.columns += new
            self._layouts += 1
            self._pack = row_packer(self.header("", "", -1))
        places = {name: place for place, name in enumerate(names)}
        self._places = None if names == self.columns else [places.get(name, -1) for name in self.columns]
        self._loss_at = places.get(LOSS, -1)
        self.names = names
        return has_changed

    def row(self, step: int, mode: ModeKeys, mode_step: int, seconds: float, values: Sequence[float]) -> bytes:
        """The bytes of a row of the names that ``fit`` was called with last; none if it is left out."""
        thinning = self.thinning
        if thinning.stride > 1 and thinning.leaves_out(values[self._loss_at] if self._loss_at >= 0 else ABSENT):
            return b""
        if self._places is not None:
            values = [values[place] if place >= 0 else ABSENT for place in self._places]
        if mode is not self._mode[0]:
            self._mode = mode, mode.value
        row = self._pack(step, mode_step, seconds, self._mode[1], values)
        thinning.grow(len(row))
        return row
