"""The series of a run as a source of tensors: each number of a step is a tensor of one element."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.series import SeriesTable
from smd_agent.analysis.steps import Contents, StepState, StepTable
from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import TensorUnavailableForStep
from smd_agent.formats.event_decoder import Form, SavedTensor
from smd_agent.formats.index import Index, Names, Payload
from smd_agent.storage.index_files import StepIndex
from smd_agent.storage.series_reader import SeriesFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from smd_agent.formats.scalar_columns import Numbers, Rows

COLLECTION = "series"
_NUMBER_BYTES = 8
# How the numbers are judged: a loss should fall, and those of the optimizer may be what they like.
_COLLECTIONS = {
    COLLECTION: "^series/",
    CollectionKeys.LOSSES: "^series/loss$",
    CollectionKeys.OPTIMIZER: "^series/(learning_rate|loss_scale|seconds|skipped)$",
}
_MODES = {mode.value: mode for mode in ModeKeys}


class _Part(NamedTuple):
    """A table of one worker: its names, and of each row which of them it has."""

    table: SeriesTable
    names: tuple[str, ...]
    known: npt.NDArray[np.bool_]

    def row(self, step: int) -> int:
        """The row of a step; -1 if it has none."""
        place = int(np.searchsorted(self.table.steps, step))
        return place if place < len(self.table.steps) and self.table.steps[place] == step else -1


class _OfMode(NamedTuple):
    """Steps of one worker in one mode, in order: as it counts them, and over all modes."""

    mode_steps: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]


class SeriesSteps(StepTable):
    """The steps that have a row; every one is complete.

    Args:
        tables: by worker and name.
        has_ended: tells whether no more rows can come.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, SeriesTable]], has_ended: Callable[[], bool]) -> None:
        super().__init__(0)
        self._has_ended = has_ended
        self.num_workers = len(tables)
        self._parts = {worker: [_part(table) for table in own.values()] for worker, own in sorted(tables.items())}
        self._of_mode: dict[ModeKeys, dict[str, _OfMode]] = {}
        self._payloads: dict[tuple[tuple[int, bytes], ...], Payload] = {}
        self._steps: dict[ModeKeys, list[int]] = {}
        for worker, parts in self._parts.items():
            for mode in {_MODES.get(number) for part in parts for number in np.unique(part.table.modes).tolist()}:
                if mode is not None:
                    self._of_mode.setdefault(mode, {})[worker] = _of_mode(parts, mode)
        every = [part.table.steps for parts in self._parts.values() for part in parts]
        self._all = np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)
        self.last_complete_step = int(self._all[-1]) if self._all.size else -1

    def files(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> dict[str, StepIndex]:
        """Return what stands for the index files of a step, by worker."""
        found = {}
        for worker, parts in self._parts.items():
            number = step if mode is ModeKeys.GLOBAL else self._step_of(worker, mode, step)
            file = None if number is None else self._file(worker, parts, number)
            if file is not None:
                found[worker] = file
        return found

    def modes(self) -> KeysView[ModeKeys]:
        """Return the modes seen, without GLOBAL."""
        return {mode: 0 for mode in self._of_mode if mode is not ModeKeys.GLOBAL}.keys()

    def workers(self) -> set[str]:
        """Return the workers that have a row."""
        return set(self._parts)

    def steps(self, mode: ModeKeys, incomplete: bool = False) -> list[int]:
        """Return the steps of a mode in order, as the mode counts them; GLOBAL has those of all modes."""
        if mode not in self._steps:
            own = self._of_mode.get(mode, {}).values()
            counted = [self._all] if mode is ModeKeys.GLOBAL else [one.mode_steps for one in own]
            self._steps[mode] = np.unique(np.concatenate(counted)).tolist() if counted else []
        return self._steps[mode]

    def is_complete(self, step: int) -> bool:
        """Tell whether nothing can be added any more to a step."""
        return step <= self.last_complete_step

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it has no row."""
        if mode is ModeKeys.GLOBAL:
            return mode_step
        found = (self._step_of(worker, mode, mode_step) for worker in self._of_mode.get(mode, {}))
        return next((step for step in found if step is not None), None)

    def mode_step(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return a global step's mode and number within it; None when it has no row."""
        files = self.files(step)
        return next(((file.index.mode, file.index.mode_step) for file in files.values()), None)

    def state(self, step: int, mode: ModeKeys) -> StepState:
        """Tell whether a step is there, can still come, or will not come any more."""
        if self.files(step, mode):
            return StepState.AVAILABLE
        steps = self.steps(mode)
        is_over = self._has_ended() or (bool(steps) and step < steps[-1])
        return StepState.UNAVAILABLE if is_over else StepState.NOT_YET_AVAILABLE

    def steps_of(self, name: str, mode: ModeKeys) -> list[int]:
        """Return the steps that have a number of this name, as the mode counts them."""
        found: list[npt.NDArray[np.int64]] = []
        for table, names, known in (part for parts in self._parts.values() for part in parts):
            if name in names:
                rows = known[:, names.index(name)]
                if mode is not ModeKeys.GLOBAL:
                    rows = rows & (table.modes == mode.value)
                found.append((table.steps if mode is ModeKeys.GLOBAL else table.mode_steps)[rows])
        return np.unique(np.concatenate(found)).tolist() if found else []

    def number(self, file: StepIndex, name: str) -> float | None:
        """Return a number of a step; None if it has none."""
        for part in self._parts.get(file.worker, ()):
            row = part.row(file.step) if name in part.names else -1
            if row >= 0 and part.known[row, part.names.index(name)]:
                return float(part.table[name][row])
        return None

    def seconds(self, file: StepIndex) -> float:
        """Return when a step ended, in seconds since the epoch."""
        rows = ((part, part.row(file.step)) for part in self._parts.get(file.worker, ()))
        return next((float(part.table.seconds[row]) for part, row in rows if row >= 0), 0.0)

    def names(self) -> set[str]:
        """Return the names of all numbers."""
        return {name for parts in self._parts.values() for part in parts for name in part.names}

    def _step_of(self, worker: str, mode: ModeKeys, mode_step: int) -> int | None:
        own = self._of_mode.get(mode, {}).get(worker)
        if own is None:
            return None
        place = int(np.searchsorted(own.mode_steps, mode_step))
        is_found = place < len(own.mode_steps) and own.mode_steps[place] == mode_step
        return int(own.steps[place]) if is_found else None

    def _file(self, worker: str, parts: Sequence[_Part], step: int) -> StepIndex | None:
        rows = [(part, row) for part in parts if (row := part.row(step)) >= 0]
        if not rows:
            return None
        first, place = rows[0]
        mode = _MODES.get(int(first.table.modes[place]), ModeKeys.GLOBAL)
        key = tuple((id(part), part.known[row].tobytes()) for part, row in rows)
        if key not in self._payloads:
            self._payloads[key] = _payload(rows)
        return StepIndex(step, worker, Index(mode, int(first.table.mode_steps[place]), None, self._payloads[key]))


class SeriesSource:
    """The series as a source of tensors; see `TensorSource`.

    Args:
        files: of the series.
        has_ended: tells whether the run has ended.
    """

    def __init__(self, files: SeriesFiles, has_ended: Callable[[], bool]) -> None:
        self._files = files
        self._has_ended = has_ended
        self._contents: dict[int, tuple[Payload, Contents]] = {}
        self.tables: dict[str, dict[str, SeriesTable]] = {}
        self._step_table: SeriesSteps | None = None
        self.maybe_refresh()

    @property
    def step_table(self) -> SeriesSteps:
        """The steps; they are counted when they are first asked for, which a look at the numbers alone never does."""
        if self._step_table is None:
            self._step_table = SeriesSteps(self.tables, self._has_ended)
        return self._step_table

    def maybe_refresh(self) -> None:
        """Look for new rows."""
        if not self._files.refresh() and self.tables:
            return
        self.tables = {
            worker: {table: SeriesTable(self._files.segments(worker, table)) for table in sorted(tables, reverse=True)}
            for worker, tables in sorted(self._files.tables().items())
        }
        self._step_table = None
        self._contents.clear()

    def tensor_names(self) -> list[str]:
        """Return the sorted names of the numbers."""
        return sorted(self.step_table.names())

    def collections(self) -> dict[str, Collection]:
        """Return the collections that the numbers are in, by name."""
        return {name: Collection(name, regex) for name, regex in _COLLECTIONS.items()}

    def workers(self) -> list[str]:
        """Return the workers that have a row, in order."""
        return sorted(self.tables)

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it has no row."""
        return self.step_table.global_step(mode, mode_step)

    def contents(self, file: StepIndex) -> Contents:
        """Return the numbers of one worker's step."""
        payload = file.index.payload
        if id(payload) not in self._contents:
            self._contents[id(payload)] = payload, Contents(frozenset(payload.tensors.names), {})
        return self._contents[id(payload)][1]

    def read(self, file: StepIndex, stored_name: str) -> SavedTensor:
        """Read a number of a step."""
        value = self.number(file, stored_name)
        index, seconds = file.index, self.step_table.seconds(file)
        return SavedTensor(stored_name, file.step, index.mode, index.mode_step, seconds, np.array([value]), "float64")

    def bring(self, file: StepIndex, stored_names: Sequence[str]) -> None:
        """Do nothing: all is there."""

    def number(self, file: StepIndex, stored_name: str) -> np.generic:
        """Read a number of a step."""
        found = self.step_table.number(file, stored_name)
        if found is None:
            raise TensorUnavailableForStep(stored_name, file.index.mode_step, file.index.mode)
        value: np.generic = np.float64(found)
        return value

    def numbers(self, file: StepIndex, stored_names: Iterable[str]) -> dict[str, float]:
        """Read numbers of a step; those that it does not have are left out."""
        found = {name: self.step_table.number(file, name) for name in stored_names}
        return {name: number for name, number in found.items() if number is not None}

    def form(self, file: StepIndex, stored_name: str) -> Form | None:
        """Tell dtype and shape of a number."""
        return Form("float64", (1,)) if file.index.payload.location(stored_name) else None

    def column(self, place: StepIndex, names: tuple[str, ...]) -> Numbers:
        """Read numbers of a step: those, and which of them there are."""
        found = [self.step_table.number(place, name) for name in names]
        return np.array([0.0 if one is None else one for one in found]), np.array([one is not None for one in found])

    def rows(self, place: StepIndex, names: tuple[str, ...]) -> Rows:
        """Return nothing: each number is read by itself."""
        return []


def is_series(collection: object) -> bool:
    """Tell whether a collection, or its name, is that of the series."""
    return COLLECTION in (collection, getattr(collection, "name", None))


def _part(table: SeriesTable) -> _Part:
    names = tuple(table)
    known = np.stack([table.is_there(name) for name in names], axis=1) if names else np.zeros((0, 0), bool)
    return _Part(table, names, known)


def _of_mode(parts: Iterable[_Part], mode: ModeKeys) -> _OfMode:
    chosen = [(part.table, part.table.modes == mode.value) for part in parts]
    mode_steps = np.concatenate([table.mode_steps[rows] for table, rows in chosen])
    steps = np.concatenate([table.steps[rows] for table, rows in chosen])
    # Of a number that comes twice the later step.
    mode_steps, places = np.unique(mode_steps[::-1], return_index=True)
    return _OfMode(mode_steps, steps[::-1][places])


def _payload(rows: Iterable[tuple[_Part, int]]) -> Payload:
    names = [name for part, row in rows for name, there in zip(part.names, part.known[row], strict=True) if there]
    lengths = array("q", [_NUMBER_BYTES] * len(names))
    starts = array("q", range(0, _NUMBER_BYTES * len(names), _NUMBER_BYTES))
    return Payload(Names(tuple(names), {name: place for place, name in enumerate(names)}), starts, lengths, {})
