"""A run as files for TensorBoard: the tags that it would have had while it was written, made of what it has saved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.display_collection import settle
from smd_agent.core.distribution import from_counts
from smd_agent.core.reduction_config import HISTOGRAM_OP
from smd_agent.core.reductions.histogram import BUCKETS
from smd_agent.errors import SMDebugError, SMDebugRuntimeError
from smd_agent.storage.tensorboard_files import BoardFiles, BoardStep

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import TensorSource
    from smd_agent.core.collection import Collection
    from smd_agent.core.display_collection import DisplayCollections
    from smd_agent.core.distribution import Distribution
    from smd_agent.core.names import Op
    from smd_agent.formats.event_decoder import SavedTensor
    from smd_agent.storage.index_files import StepIndex

Problems = dict[tuple[int, str, str], str]


def write(
    files: Iterable[tuple[StepIndex, list[str]]],
    source: TensorSource,
    collections: Mapping[str, Collection],
    folder: str,
) -> Problems:
    """Write files for TensorBoard, and return what is damaged, by step, worker and tensor.

    Args:
        files: steps of workers, in order, and the names of their tensors.
        source: the trial.
        collections: of the run.
        folder: made where it is missing.

    Raises:
        SMDebugRuntimeError: the files cannot be written.
    """
    shown_in: DisplayCollections = {}
    problems: Problems = {}
    boards: dict[str, BoardFiles] = {}
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for file, names in files:
            for name in names:
                members = [] if name in shown_in else _members(name, collections)
                if members:
                    settle(shown_in, name, members)
            if file.worker not in boards:
                boards[file.worker] = BoardFiles(lambda: (root, ""), file.worker)
            boards[file.worker].write(_Reading(source, file, problems).step(names, shown_in))
    except OSError as error:
        raise SMDebugRuntimeError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        for board in boards.values():
            board.close()
    return problems


def _members(name: str, collections: Mapping[str, Collection]) -> list[tuple[str, bool]]:
    members = [found for found in collections.values() if name in found.tensor_names]
    if not members:
        # The run was cut off before its collections file had the name.
        members = [found for found in collections.values() if found.matches(name)]
    return [(found.name, found.save_histogram) for found in members]


class _Reading:
    """The values that one worker has saved at one step."""

    def __init__(self, source: TensorSource, file: StepIndex, problems: Problems) -> None:
        self._source = source
        self._file = file
        self._problems = problems
        self._contents = source.contents(file)

    def step(self, names: Iterable[str], shown_in: DisplayCollections) -> BoardStep:
        step = BoardStep(self._file.step, self._file.index.mode, self._wall_time(), shown_in)
        for name, numbers in self._numbers(names).items():
            ops = self._contents.reductions.get(name, {})
            if numbers:
                step.add_scalars(tuple(ops[op] for op in numbers), np.array([*numbers.values()], np.float64))
            if self._file.index.payload.location(name) is not None:
                saved = self._read(name, name)
                if saved is not None:
                    step.add(name, saved.value, saved.wall_time)
            elif HISTOGRAM_OP in ops and name in shown_in and shown_in[name].histogram:
                saved = self._read(name, ops[HISTOGRAM_OP])
                if saved is not None and _is_of_several(saved.value):
                    step.distributions[name] = _distribution(saved.value, numbers)
        return step

    def _wall_time(self) -> float:
        """The time at which the step was taken: what its first record says."""
        first = next(iter(self._file.index.payload.tensors.names), None)
        found = None if first is None else self._read(first, first)
        return 0.0 if found is None else found.wall_time

    def _numbers(self, names: Iterable[str]) -> dict[str, dict[Op, float]]:
        """The stored reductions of tensors that are numbers, by the tensors' names."""
        stored = {
            name: {op: place for op, place in self._contents.reductions.get(name, {}).items() if op != HISTOGRAM_OP}
            for name in names
        }
        places = [place for ops in stored.values() for place in ops.values()]
        known = self._source.numbers(self._file, places)
        found: dict[str, dict[Op, float]] = {}
        for name, ops in stored.items():
            found[name] = {}
            for op, place in ops.items():
                number = known[place] if place in known else self._number(name, place)
                if number is not None:
                    found[name][op] = number
        return found

    def _number(self, name: str, stored: str) -> float | None:
        try:
            return float(self._source.number(self._file, stored))
        except SMDebugError as error:
            self._damaged(name, error)
            return None

    def _read(self, name: str, stored: str) -> SavedTensor | None:
        try:
            return self._source.read(self._file, stored)
        except SMDebugError as error:
            self._damaged(name, error)
            return None

    def _damaged(self, name: str, error: SMDebugError) -> None:
        self._problems[self._file.step, self._file.worker, name] = str(error)


def _is_of_several(counts: npt.NDArray[Any]) -> bool:
    """True if something is a histogram, and of more than one element."""
    return counts.shape == (BUCKETS,) and counts.dtype.kind == "i" and int(counts.sum()) > 1


def _distribution(counts: npt.NDArray[np.int64], numbers: Mapping[Op, float]) -> Distribution:
    """A distribution from a stored histogram, as exact as the reductions beside it make it."""
    estimated = from_counts(counts)
    if estimated.others or not estimated.size:
        return estimated

    def known(op: str, otherwise: float) -> float:
        number = numbers.get((op, False), math.nan)
        return number if math.isfinite(number) else otherwise

    return estimated._replace(
        low=known("min", estimated.low),
        high=known("max", estimated.high),
        total=known("sum", known("mean", estimated.total / estimated.size) * estimated.size),
        squares=known("l2", estimated.squares**0.5) ** 2,
    )
