"""The series of a run as tables of numbers: what one worker has noted of every step, saved or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.formats.series import is_there
from smd_agent.storage.series_reader import Segment


class SeriesTable(Mapping[str, npt.NDArray[np.float64]]):
    """One table: by name, the numbers of all rows, in the order of the steps; NaN where a row has none.

    Args:
        segments: its files. Of two rows of a step the later one counts.

    Attributes:
        steps: over all modes.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._parts = _parts(segments)
        steps = self._joined("step", np.int64)
        self._order: npt.NDArray[np.int64] | None = None
        if np.any(steps[1:] <= steps[:-1]):
            # The last one of each.
            _, places = np.unique(steps[::-1], return_index=True)
            self._order = len(steps) - 1 - places
        self.steps = self._ordered(steps)
        self._places: dict[str, list[int]] = {}
        for part, (columns, _) in enumerate(self._parts):
            for place, name in enumerate(columns):
                self._places.setdefault(name, [-1] * len(self._parts))[part] = place
        self._read: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]] = {}

    @cached_property
    def modes(self) -> npt.NDArray[np.uint8]:
        """Numbers of the modes, see `ModeKeys`."""
        return self._ordered(self._joined("mode", np.uint8))

    @cached_property
    def mode_steps(self) -> npt.NDArray[np.int64]:
        """The steps as their modes count them."""
        return self._ordered(self._joined("mode_step", np.int64))

    @cached_property
    def seconds(self) -> npt.NDArray[np.float64]:
        """The times at which the steps ended, since the epoch."""
        return self._ordered(self._joined("seconds", np.float64))

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        return self._column(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def is_there(self, name: str) -> npt.NDArray[np.bool_]:
        """Tell of each row whether it has a number of this name, which may be NaN."""
        return self._column(name)[1]

    def _column(self, name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        if name not in self._read:
            places = self._places[name]
            values, known = [], []
            for (_, rows), place in zip(self._parts, places, strict=True):
                if place < 0:
                    values.append(np.full(len(rows), np.nan))
                    known.append(np.zeros(len(rows), bool))
                else:
                    values.append(rows["values"][:, place].astype(np.float64))
                    known.append(is_there(rows["values"][:, place]))
            self._read[name] = self._ordered(np.concatenate(values)), self._ordered(np.concatenate(known))
        return self._read[name]

    def _joined(self, field: str, dtype: type[np.generic]) -> npt.NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *(rows[field] for _, rows in self._parts)]).astype(dtype)

    def _ordered(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array if self._order is None else array[self._order]

    def __repr__(self) -> str:
        return f"SeriesTable({len(self.steps)} rows of {', '.join(self)})"


def _parts(segments: Iterable[Segment]) -> list[tuple[tuple[str, ...], npt.NDArray[Any]]]:
    """Columns and rows of each array; those that a later start of the run has made anew are left out."""
    parts: list[tuple[tuple[str, ...], npt.NDArray[Any]]] = []
    start = None
    for header, arrays in segments:
        if header.start != start and header.after >= 0:
            parts = [(columns, rows[rows["step"] <= header.after]) for columns, rows in parts]
        start = header.start
        # Of a file without a row the names are known.
        parts += [(header.columns, rows) for rows in arrays or (np.empty(0, header.row_type),)]
    return parts
