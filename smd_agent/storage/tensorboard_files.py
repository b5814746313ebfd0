"""TensorBoard's files of a run: one for each mode, which grows step by step and can be read at any time.

They lie at ``<mode>/<step>_<pid>_<host>.tfevents``, the step being the first one in it, in twelve digits; those of
further workers at ``<mode>/<worker>/``. TensorBoard takes each folder for a run.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import SCALAR_COLLECTIONS
from smd_agent.core.display_collection import DisplayCollections
from smd_agent.core.distribution import Distribution, distribution_of, has_distribution
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import REDUCTION_PREFIX
from smd_agent.formats import summaries
from smd_agent.storage.atomic_file import GrowingFile, names_in, remove_file

FIRST_WORKER = "worker_0"
FOLDER = "tensorboard"
_ENDING = ".tfevents"

_CACHED_LAYOUTS = 10_000


class BoardStep:
    """The part of TensorBoard's files that shows one step of one worker, collected by the thread that saves it.

    Tags and bytes are made of it later, by whoever writes them.

    Args:
        step: over all modes.
        mode: of the step.
        wall_time: seconds since the epoch.
        shown_in: the display collections of the tensors; looked into when a tensor is added, and when it is written.

    Attributes:
        step, mode, wall_time, shown_in: the same.
        reductions: for the stored names of reductions that came together, their values.
        numbers: tensors of one element by name: the number, and the time that it has.
        distributions: of other tensors, by name.
    """

    def __init__(self, step: int, mode: ModeKeys, wall_time: float, shown_in: DisplayCollections) -> None:
        self.step = step
        self.mode = mode
        self.wall_time = wall_time
        self.shown_in = shown_in
        self.reductions: dict[tuple[str, ...], npt.NDArray[np.float64]] = {}
        self.numbers: dict[str, tuple[float, float]] = {}
        self.distributions: dict[str, Distribution] = {}

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        values = sum(one.nbytes for one in self.reductions.values())
        pictures = sum(one.places.nbytes + one.counts.nbytes + 200 for one in self.distributions.values())
        return values + pictures + 200 * len(self.numbers)

    def add(self, name: str, array: npt.NDArray[Any], wall_time: float | None = None) -> None:
        """Take a tensor that is saved whole; of a stored histogram nothing is taken.

        Args:
            name: its stored name.
            array: its values, which may change afterwards.
            wall_time: seconds since the epoch, if not the step's.
        """
        if name.startswith(REDUCTION_PREFIX):
            return
        if array.size == 1:
            if array.dtype.kind in "fiub":
                self.numbers[name] = float(array.reshape(-1)[0]), self.wall_time if wall_time is None else wall_time
            return
        shown = self.shown_in.get(name)
        if shown is not None and shown.histogram and has_distribution(array):
            self.distributions[name] = distribution_of(array)

    def add_scalars(self, names: tuple[str, ...], values: npt.NDArray[np.float64]) -> None:
        """Take reductions: one number for each stored name."""
        self.reductions[names] = values.copy()

    def drop(self, names: set[str]) -> None:
        """Forget what was taken under these stored names."""
        for name in names:
            self.numbers.pop(name, None)
            self.distributions.pop(name, None)
        for stored, values in [*self.reductions.items()]:
            if not names.isdisjoint(stored):
                del self.reductions[stored]
                kept = [place for place, name in enumerate(stored) if name not in names]
                if kept:
                    self.reductions[tuple(stored[place] for place in kept)] = values[kept]


class BoardFiles:
    """The files of one worker; none is made before the first step.

    Args:
        place: gives the folder that they go into, which must be there, and what is below it in front of their names.
        worker: the worker's name.
    """

    def __init__(self, place: Callable[[], tuple[Path, str]], worker: str = FIRST_WORKER) -> None:
        self._place = place
        self._below = _below(worker)
        self._files: dict[ModeKeys, tuple[Path, GrowingFile]] = {}
        self._layouts: dict[tuple[str, ...], summaries.Scalars] = {}
        # Tensors that had elements that were not finite, and whose number of these is shown from then on.
        self._others: set[tuple[ModeKeys, str]] = set()

    def write(self, step: BoardStep) -> None:
        """Write a step, all of it or nothing.

        Raises:
            OSError: it cannot be written; the next one is tried again.
        """
        records = b"".join(self._records(step))
        if records:
            self._file(step).append(records)

    def close(self) -> None:
        """Close the files; a step that follows begins new ones."""
        for _, file in self._files.values():
            file.close()
        self._files.clear()

    def _file(self, step: BoardStep) -> GrowingFile:
        root, below = self._place()
        known = self._files.get(step.mode)
        if known is not None:
            if known[0] == root and known[1].is_there and known[1].is_whole:
                return known[1]
            del self._files[step.mode]
            known[1].close()
        folder = f"{below}{step.mode.name}{self._below}"
        file = GrowingFile(root, folder, f"{step.step:012d}_{os.getpid()}_{os.uname().nodename}", _ENDING)
        self._files[step.mode] = root, file
        file.append(summaries.file_head(time.time()))
        return file

    def _records(self, step: BoardStep) -> Iterator[bytes]:
        scalars = [
            self._layout(names, step.shown_in).render(values)
            for names, values in step.reductions.items()
            if values.size
        ]
        for name, (number, wall_time) in step.numbers.items():
            one = self._layout((name,), step.shown_in).render(np.array([number]))
            if wall_time == step.wall_time:
                scalars.append(one)
            else:
                yield summaries.summary(wall_time, step.step, one)
        for name, distribution in step.distributions.items():
            collection = step.shown_in[name].collection
            tag = summaries.tag_of(f"{collection}/{name}")
            if distribution.others:
                self._others.add((step.mode, tag))
            if (step.mode, tag) in self._others:
                scalars.append(summaries.scalar(f"{tag}/nonfinite_count", distribution.others))
            if distribution.size:
                yield summaries.summary(step.wall_time, step.step, summaries.histogram(tag, distribution))
        if scalars:
            yield summaries.summary(step.wall_time, step.step, b"".join(scalars))

    def _layout(self, names: tuple[str, ...], shown_in: DisplayCollections) -> summaries.Scalars:
        known = self._layouts.get(names)
        if known is None:
            if len(self._layouts) >= _CACHED_LAYOUTS:
                self._layouts.clear()
            known = self._layouts[names] = summaries.Scalars([_scalar_tag(name, shown_in) for name in names])
        return known


def remove_files_of(worker: str, root: Path, below: str, process: tuple[int, str] | None = None) -> None:
    """Remove the files of a worker; nothing else in its folders is touched.

    Args:
        worker: its name.
        root: the folder that they are in, which may be missing.
        below: what is below it in front of their names.
        process: pid and host of the process that has written them; None: of any.

    Raises:
        OSError: one cannot be removed.
    """
    pid, host = (r"\d+", ".+") if process is None else (str(process[0]), re.escape(process[1]))
    written = re.compile(rf"\d{{12}}_{pid}_{host}(_\d+)?{re.escape(_ENDING)}", re.DOTALL)
    for mode in ModeKeys:
        folder = f"{below}{mode.name}{_below(worker)}"
        for name in names_in(root, folder):
            if written.fullmatch(name):
                remove_file(root, f"{folder}/{name}")


def _below(worker: str) -> str:
    return "" if worker == FIRST_WORKER else f"/{summaries.tag_of(worker).replace('/', '_')}"


def _scalar_tag(name: str, shown_in: DisplayCollections) -> str:
    """The tag of a number that is stored under a name.

    A reduction's is ``<collection>/<tensor>/<op>``. Losses, metrics and the like have their names, as smdebug's had;
    any other tensor of one element is with those of its collection.
    """
    if name.startswith(REDUCTION_PREFIX):
        op, _, tensor = name.removeprefix(REDUCTION_PREFIX).partition("/")
        shown = shown_in.get(tensor)
        return summaries.tag_of(name if shown is None else f"{shown.collection}/{shown.tensor}/{op}")
    shown = shown_in.get(name)
    if shown is None or shown.collection in SCALAR_COLLECTIONS:
        return summaries.tag_of(name)
    return summaries.tag_of(f"{shown.collection}/{name}")
