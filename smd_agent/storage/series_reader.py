"""The files of a run's series as a reader sees them: what they hold by now, and what has come since."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from smd_agent.formats.paths import SERIES_FOLDER, parse_series_file
from smd_agent.formats.series import Header, UnfitSeries, header_size, parse_header, rows_in
from smd_agent.regular_file import bytes_from, open_to_read, read_bytes
from smd_agent.storage.index_files import names_in

_FIRST_BYTES = 1 << 12


class Segment(NamedTuple):
    """One file: its header, and its rows in the order in which they were written, in one or several arrays."""

    header: Header
    rows: tuple[npt.NDArray[Any], ...]


class SeriesFiles:
    """The files of one run.

    Args:
        root: the run's folder; it need not exist yet.
        bring: brings what is new into the folder, if the run is elsewhere.

    Attributes:
        problems: what is wrong with each file that cannot be read, by its path below the run's root.
    """

    def __init__(self, root: Path, bring: Callable[[], object] = bool) -> None:
        self._bring = bring
        self.problems: dict[str, str] = {}
        self._folder = root / SERIES_FOLDER
        self._known: dict[str, Segment] = {}
        # How many bytes of each have been taken in.
        self._ends: dict[str, int] = {}

    def refresh(self) -> bool:
        """Take in what has been written since the last look; whether there is anything new."""
        self._bring()
        before = {name: self._ends.get(name, 0) for name in self._known}
        there = {name for name in names_in(self._folder) if parse_series_file(name) is not None}
        for name in {*self._known} - there:
            del self._known[name], self._ends[name]
        for name in sorted(there):
            self._read(name)
        return before != {name: self._ends.get(name, 0) for name in self._known}

    def segments(self, worker: str, table: str) -> Iterator[Segment]:
        """Yield the files of one table of a worker, the first one first."""
        chosen = [(*parsed, name) for name in self._known if (parsed := parse_series_file(name)) is not None]
        for _, _, _, name in sorted(one for one in chosen if one[:2] == (worker, table)):
            yield self._known[name]

    def tables(self) -> dict[str, set[str]]:
        """The names of the tables that there are, by worker."""
        found: dict[str, set[str]] = {}
        for name in self._known:
            parsed = parse_series_file(name)
            if parsed is not None:
                found.setdefault(parsed[0], set()).add(parsed[1])
        return found

    def _read(self, name: str) -> None:
        path = f"{SERIES_FOLDER}/{name}"
        try:
            self._read_on(name)
        except UnfitSeries as error:
            self.problems[path] = str(error)
        except OSError as error:
            self.problems[path] = error.strerror or str(error)
        else:
            self.problems.pop(path, None)

    def _read_on(self, name: str) -> None:
        known = self._known.get(name)
        if known is not None and os.stat(self._folder / name).st_size == self._ends[name]:
            return
        with open_to_read(self._folder / name) as file:
            if known is None or os.fstat(file.fileno()).st_size < self._ends[name]:
                head = read_bytes(file, min(bytes_from(file, 0), _FIRST_BYTES))
                size = header_size(head)
                if not size or bytes_from(file, 0) < size:
                    # Its first bytes are being written.
                    return
                known = Segment(parse_header(read_bytes(file, size)), ())
                self._ends[name] = size
            data = read_bytes(file, bytes_from(file, self._ends[name]))
            rows, taken = rows_in(data, known.header)
            self._known[name] = Segment(known.header, (*known.rows, rows) if rows.size else known.rows)
            self._ends[name] += taken
