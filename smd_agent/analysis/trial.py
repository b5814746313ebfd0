"""One run as a program reads it, finished or still going on: `create_trial` opens it."""

from __future__ import annotations

import logging
import os
import posixpath
import time
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smd_agent.analysis.collections_files import POLL_SECONDS, CollectionsFiles
from smd_agent.analysis.series import SeriesTable
from smd_agent.analysis.series_source import SeriesSource, is_series
from smd_agent.analysis.steps import Catalogue, Contents, StepState, StepTable, flat
from smd_agent.analysis.tensor import Tensor
from smd_agent.analysis.trial_tables import Choice, Views
from smd_agent.config import env
from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.patterns import NamePattern, name_pattern
from smd_agent.errors import (
    DamagedRecord,
    InvalidWorker,
    NoMoreData,
    SMDebugNotImplementedError,
    StepUnavailable,
    TensorUnavailable,
)
from smd_agent.formats.addresses import plain
from smd_agent.formats.event_decoder import Form, SavedTensor
from smd_agent.formats.series import PREFIX, STEPS_TABLE
from smd_agent.printable import shortened
from smd_agent.storage.index_files import StepIndex
from smd_agent.storage.store_reader import reader_of

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import TensorSource

logger = logging.getLogger("smd_agent")

DEFAULT_TIMEOUT = 600.0


def create_trial(
    path: str | os.PathLike[str],
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "/opt/ml/processing/outputs/",
    **kwargs: Any,
) -> Trial:
    """Open a run.

    Args:
        path: the run's folder, of which ``~`` is expanded, or its address in a store, such as ``s3://bucket/run``.
        name: the trial's name; the folder's base name by default.
        profiler: must be false.
        output_dir: not used.
        kwargs: ``range_steps``, ``cache`` and ``timeout`` of `Trial`; ``parallel``, ``check`` and ``index_mode``
            are accepted and change nothing.

    Raises:
        SMDebugNotImplementedError: profiler data is asked for.
        MissingCollectionFiles, SMDebugRuntimeError: as `Trial`.
    """
    text = os.fspath(path).strip()
    if profiler:
        raise SMDebugNotImplementedError("profiler data cannot be read: call create_trial with profiler=False")
    return Trial(name or os.path.basename(text.rstrip("/")), text, **kwargs)


class Trial(Views):
    """A run that is read.

    It looks for new steps whenever it is asked something that may have changed, until the run has ended; then
    ``loaded_all_steps`` is set. Setting ``dynamic_refresh`` to false stops that. Steps are numbered as ``mode``
    counts them; GLOBAL counts those of all modes.

    Args:
        name, dirname: the trial's name, and the run's folder or its address in a store.
        range_steps: (first, end) global steps to load, ``end`` excluded; either may be None.
        parallel, check, index_mode: not used: every checksum is checked, and the index files are used.
        cache: keep every value that was read in memory.
        timeout: seconds to wait for the collections files of a run that has not ended.

    Raises:
        MissingCollectionFiles: the run has ended without all of its collections files.
        SMDebugRuntimeError: there is no run in the folder, or the store cannot be read.

    Attributes:
        path: the run's folder or address.
        root: the folder that has its files, or what has been fetched of them.
    """

    def __init__(
        self,
        name: str,
        dirname: str | os.PathLike[str],
        range_steps: tuple[int | None, int | None] | None = None,
        parallel: bool = True,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        first, end = _checked_range(range_steps)
        self.name = name
        self.path = os.path.expanduser(plain(os.fspath(dirname)))
        self.range_steps = range_steps
        self.dynamic_refresh = True
        self.step_table = StepTable(env.incomplete_step_window())
        self._read_values: dict[tuple[int, str, str], SavedTensor] | None = {} if cache else None
        self._tensors: dict[str, Tensor] = {}
        self._catalogue = Catalogue()
        self._seen: set[Contents] = set()
        self._end_delay = env.training_end_delay()
        self._reader = reader_of(self.path, first, end)
        self.root = self._reader.root
        # Many numbers, or small tensors, of one step at once: see `RunReader`.
        self.column, self.rows = self._reader.column, self._reader.rows
        self._collections = CollectionsFiles(self._reader)
        self._series: SeriesSource | None = None
        self._open(timeout)

    def _open(self, timeout: float) -> None:
        self._collections.wait(timeout)
        self.refresh_data()

    @property
    def num_workers(self) -> int:
        """Number of workers that must have written a step for it to be complete."""
        return self.step_table.num_workers

    @property
    def last_complete_step(self) -> int:
        """The last global step that all workers have written, or that there is if the run has ended; -1 without any."""
        return self.step_table.last_complete_step

    @property
    def loaded_all_steps(self) -> bool:
        """True if the run has ended and all of its steps are known."""
        return self.step_table.ended

    @property
    def collection_manager(self) -> CollectionManager:
        """The run's collections."""
        return self._collections.manager

    @property
    def problems(self) -> dict[str, str]:
        """The problems of index files that could not be read, by their paths below the run's folder."""
        return dict(self._reader.problems)

    def take_as_it_is(self) -> None:
        """Look for nothing new any more, and wait for no event file that is not there."""
        self.dynamic_refresh = self._reader.patient = False

    def refresh_data(self) -> None:
        """Take in the steps that have been written since the last look."""
        self._collections.refresh()
        files = list(self._reader.new_indexes())
        self.step_table.num_workers = self._collections.num_workers
        self.step_table.add(files)
        for file in files:
            self._add_names(file)

    def refresh_tensor(self, tname: str, steps: object = None) -> None:
        """Take in the steps that have been written since the last look, of all tensors."""
        self.refresh_data()

    def maybe_refresh(self, name: str | None = None) -> None:
        """Look for new steps unless all are known or refreshing is switched off."""
        if self.loaded_all_steps or not self.dynamic_refresh:
            return
        ended = self._reader.ended()
        self.refresh_data()
        if ended is None:
            return
        # On shared disks the last files can show up after the end mark.
        wait = min(ended + self._end_delay - time.time(), self._end_delay)
        if wait > 0:
            time.sleep(wait)
            self.refresh_data()
        self.step_table.end()

    def tensor(self, tname: str) -> Tensor:
        """Return a tensor.

        Raises:
            TensorUnavailable: none of this name has been saved so far.
        """
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        return self._tensors[tname] if tname in self._tensors else Tensor(tname, self.series_source)

    def has_tensor(self, tname: str) -> bool:
        """Tell whether a tensor was saved, in whatever form, or is a number of the series."""
        if tname not in self._tensors:
            self.maybe_refresh(tname)
        return tname in self._tensors or (tname.startswith(PREFIX) and tname in self.series_source.step_table.names())

    def series(self, worker: str | None = None) -> Mapping[str, SeriesTable]:
        """Return the tables of the series, a few numbers of every step, by name: ``steps`` and ``parameters``.

        Args:
            worker: who has noted them; the first one that has, if None.

        Raises:
            InvalidWorker: it has noted none.
        """
        tables = self.series_source.tables
        if worker is not None and worker not in tables:
            raise InvalidWorker(worker)
        return next(iter(tables.values()), {}) if worker is None else tables[worker]

    def series_of_steps(self) -> dict[str, SeriesTable]:
        """Return the tables that have one row for each step, by the worker that has noted it."""
        found = {worker: tables.get(STEPS_TABLE) for worker, tables in self.series_source.tables.items()}
        return {worker: table for worker, table in found.items() if table is not None}

    @property
    def series_source(self) -> SeriesSource:
        """The source of the series' numbers as tensors, by the latest look; for commands."""
        if self._series is None:
            self._series = SeriesSource(self._reader.series(), lambda: self.loaded_all_steps)
        elif self.dynamic_refresh and not self.loaded_all_steps:
            self._series.maybe_refresh()
        return self._series

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Return the sorted names of saved tensors; a tensor with reductions only is among them.

        Args:
            show_prefixed_tensors: not used.
            step: only those saved at this step; a global step that was not saved has none.
            mode: only those saved in this mode, and how ``step`` counts.
            regex: only names in which one of these is found.
            collection: only members of this collection. Not together with ``regex``. Numbers of the series are named
                where this is ``series``.

        Raises:
            KeyError: the mode, or the step in the mode, was not saved.
            ValueError: both ``regex`` and ``collection`` are given, or ``regex`` is none.
            TypeError: ``collection`` is neither a name nor a collection.
        """
        self.maybe_refresh()
        if is_series(collection) and regex is None:
            return sorted(self._series_names(step, mode))
        names = self._names(step, mode)
        if regex is not None and collection is not None:
            raise ValueError("Only one of `regex` or `collection` can be passed to this method")
        matches: Callable[[str], bool]
        if regex is not None:
            matches = partial(_is_found, [name_pattern(pattern) for pattern in flat(regex)])
            absent = f"no saved tensor matches {shortened(str(regex))}"
        elif collection is not None:
            members = self._collection_of(collection)
            matches = members.matches
            absent = f"no tensor of the collection {shortened(members.name)} was saved"
        else:
            return sorted(names)
        found = sorted(filter(matches, names))
        # A mode or a step may well have none of them.
        if not found and not any(map(matches, self._tensors)):
            logger.warning("smd_agent: %s", absent)
        return found

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the saved steps in order: by default only those that all workers have written."""
        self.maybe_refresh()
        return self.step_table.steps(mode, show_incomplete_steps)

    def modes(self) -> KeysView[ModeKeys]:
        """Return the modes of the saved steps, without GLOBAL."""
        return self.step_table.modes()

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it was not saved."""
        step = self.step_table.global_step(mode, mode_step)
        if step is None:
            self.maybe_refresh()
            step = self.step_table.global_step(mode, mode_step)
        return step

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Return the mode of a global step and its number there; (None, None) when it was not saved."""
        found = self.step_table.mode_step(global_step)
        if found is None:
            self.maybe_refresh()
            found = self.step_table.mode_step(global_step)
        return found or (None, None)

    def mode(self, global_step: int) -> ModeKeys | None:
        """Return the mode of a global step; None when it was not saved."""
        return self.mode_modestep(global_step)[0]

    def mode_step(self, global_step: int) -> int | None:
        """Return the number of a global step within its mode; None when it was not saved."""
        return self.mode_modestep(global_step)[1]

    def workers(self) -> list[str]:
        """Return the workers that write to the run, in order."""
        self.maybe_refresh()
        return sorted({*self._collections.workers, *self.step_table.workers()})

    def collections(self) -> dict[str, Collection]:
        """Return the run's collections by name."""
        return self.collection_manager.get_collections()

    def collection(self, coll_name: str) -> Collection:
        """Return a collection; a name the run does not know gives a new, empty one."""
        return self.collection_manager.get(coll_name)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Tell whether a step is complete, can still come, or will not come any more."""
        self.maybe_refresh()
        return self.step_table.state(step, mode)

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Wait until steps are complete, looking every two seconds for as long as the run goes on.

        Raises:
            StepUnavailable: one of them was not saved, and a later one was.
            NoMoreData: the run ended before one of them.
        """
        refreshing, self.dynamic_refresh = self.dynamic_refresh, True
        try:
            for step in required_steps:
                while (state := self.has_passed_step(step, mode)) is StepState.NOT_YET_AVAILABLE:
                    time.sleep(POLL_SECONDS)
                if state is StepState.UNAVAILABLE:
                    saved = self.step_table.steps(mode, incomplete=True)
                    if saved and step < saved[-1]:
                        raise StepUnavailable(step, mode)
                    raise NoMoreData(step, mode, saved[-1] if saved else -1)
        finally:
            self.dynamic_refresh = refreshing

    def read(self, file: StepIndex, stored_name: str) -> SavedTensor:
        """Read what one worker stored under a name at one step."""
        if self._read_values is None:
            return self._reader.read(file, stored_name)
        key = (file.step, file.worker, stored_name)
        if key not in self._read_values:
            self._read_values[key] = self._reader.read(file, stored_name)
        return self._read_values[key]

    def bring(self, file: StepIndex, stored_names: Sequence[str]) -> None:
        """Read the bytes of small tensors of one step at once, which `read` and `form` then need not do one by one."""
        self._reader.bring(file, stored_names)

    def number(self, file: StepIndex, stored_name: str) -> np.generic:
        """Read a number.

        Raises:
            DamagedRecord: it is none.
        """
        value = self.read(file, stored_name).value
        # Older writers store a reduction with the shape (1,).
        if not value.size or value.dtype.kind not in "fiub":
            raise DamagedRecord(str(file.index.event_file), stored_name, file.step, "it is no number")
        number: np.generic = value.reshape(-1)[0]
        return number

    def numbers(self, file: StepIndex, stored_names: Iterable[str]) -> dict[str, float]:
        """Read the numbers stored under some names at one step at once; some may be left out, for `number` to read."""
        return self._reader.numbers(file, stored_names)

    def form(self, file: StepIndex, stored_name: str) -> Form | None:
        """Tell dtype and shape of what one worker stored under a name, without reading its values."""
        noted = file.index.payload.shapes.get(stored_name)
        return self._reader.form(file, stored_name) or (Form(noted.dtype or "-", noted.shape) if noted else None)

    def contents(self, file: StepIndex) -> Contents:
        """Return the tensors and reductions of one worker's step."""
        return self._catalogue.contents(file.index.payload)

    def _as_source(self, choice: Choice) -> TensorSource:
        return self.series_source if is_series(choice.get("collection")) else self

    def _add_names(self, file: StepIndex) -> None:
        contents = self.contents(file)
        if contents in self._seen:
            return
        self._seen.add(contents)
        for name in contents.names:
            tensor = self._tensors.setdefault(name, Tensor(name, self))
            noted = file.index.payload.shapes.get(name)
            if noted is not None:
                tensor.original_name = noted.original_name

    def _names(self, step: int | None, mode: ModeKeys) -> set[str]:
        if step is None and mode is ModeKeys.GLOBAL:
            return set(self._tensors)
        if mode is not ModeKeys.GLOBAL and mode not in self.step_table.modes():
            raise KeyError(mode)
        steps = self.step_table.steps(mode, incomplete=True) if step is None else [step]
        files: list[StepIndex] = []
        for number in steps:
            global_step = self.step_table.global_step(mode, number)
            if global_step is None:
                raise KeyError(number)
            files += self.step_table.files(number, mode).values()
        return set().union(*(contents.names for contents in {self.contents(file) for file in files}))

    def _series_names(self, step: int | None, mode: ModeKeys) -> set[str]:
        table = self.series_source.step_table
        if step is not None:
            return {name for file in table.files(step, mode).values() for name in file.index.payload.tensors.names}
        return {name for name in table.names() if mode is ModeKeys.GLOBAL or table.steps_of(name, mode)}

    def _collection_of(self, collection: str | Collection) -> Collection:
        if isinstance(collection, str):
            return self.collection(collection)
        if isinstance(collection, Collection):
            return self.collections().get(collection.name, collection)
        raise TypeError(f"Invalid argument type for collection {type(collection)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, path={self.path!r})"


LocalTrial = Trial


def _checked_range(range_steps: tuple[int | None, int | None] | None) -> tuple[int | None, int | None]:
    first, end = range_steps or (None, None)
    assert all(bound is None or bound >= 0 for bound in (first, end)), "range_steps has global steps from 0 on"
    assert first is None or end is None or first < end, "range_steps is (first, end) with first before end"
    return first, end


class S3Trial(Trial):
    """A run below a key of a bucket of S3, which is read as `Trial` reads any other.

    Args:
        name: the trial's name.
        bucket_name, prefix_name: the bucket, and the run's key in it; a slash at its end makes no difference.
        range_steps, check, index_mode, cache, timeout: as of `Trial`.

    Raises:
        MissingCollectionFiles, SMDebugRuntimeError: as `Trial`.

    Attributes:
        bucket_name: the same.
        prefix_name: the key, with a slash at its end.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: tuple[int | None, int | None] | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.bucket_name = bucket_name
        self.prefix_name = posixpath.join(prefix_name, "")
        super().__init__(
            name, f"s3://{bucket_name}/{prefix_name}", range_steps, index_mode=index_mode, cache=cache, timeout=timeout
        )


def _is_found(patterns: Sequence[NamePattern], name: str) -> bool:
    return any(pattern.found_in(name) for pattern in patterns)
