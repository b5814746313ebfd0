"""TensorBoard's part of a run: steps and rows of the series are handed to the writer thread, which makes files of them.

What cannot be written, because the disk is full or stands still, costs these pictures and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smd_agent import guard
from smd_agent.core.display_collection import DisplayCollections
from smd_agent.core.failure_domains import BOARD
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event_encoder import Stamp
from smd_agent.formats.series import ABSENT, is_there
from smd_agent.storage.series_table import LOSS, Thinning
from smd_agent.storage.tensorboard_files import FOLDER, BoardFiles, BoardStep, remove_files_of

# In bytes, of steps that wait for the disk.
WAITING = 64 << 20
# How often rows of the series are written, and what all of a table and one number may take.
ROWS_SECONDS = 5.0
ROWS_BYTES = 16 << 20
_NUMBER_BYTES = 50


class _Row(NamedTuple):
    """A row of the series; see ``core.series``."""

    step: int
    mode: ModeKeys
    seconds: float
    names: tuple[str, ...]
    values: Sequence[float]


class RunBoard:
    """The part of TensorBoard that one process fills.

    Args:
        folder: absolute; None stands for ``tensorboard`` in the run's folder, wherever that comes to be.
        shown_in: the display collections of the run's tensors.

    Attributes:
        folder: the same.
    """

    def __init__(self, folder: Path | None, shown_in: DisplayCollections) -> None:
        self.folder = folder
        self._shown_in = shown_in
        self._files: tuple[str, BoardFiles] | None = None
        # Bytes handed over, by the training's thread, and done, by the writer's.
        self._handed = self._done = 0
        self._rows: deque[_Row] = deque()
        # By table.
        self._thinning: dict[str, Thinning] = {}
        self._rows_written_at = 0.0

    def begin_step(self, stamp: Stamp) -> BoardStep:
        """Open a step."""
        return BoardStep(stamp.step, stamp.mode, stamp.wall_time, self._shown_in)

    def commit(
        self,
        step: BoardStep,
        submit: Callable[[Callable[[], None]], None],
        place: Callable[[], tuple[Path, bool]],
        worker: str,
    ) -> None:
        """Have a filled step written.

        Args:
            step: the step.
            submit: has something done on the writer thread.
            place: gives, there, the run's folder, and whether it is the one that was asked for.
            worker: the worker's name.
        """
        size = step.size
        if self._handed - self._done > WAITING:
            line = f"step {step.step} and others are not in TensorBoard's files: the disk is too slow for them"
            guard.say_once((self, "slow"), line)
            return
        self._handed += size
        submit(partial(self._write, step, size, place, worker))

    def add_row(
        self, table: str, step: int, mode: ModeKeys, seconds: float, names: tuple[str, ...], values: Sequence[float]
    ) -> bool:
        """Take a row of a table of the series; True if it is time for ``write_rows``."""
        thinning = self._thinning.get(table)
        if thinning is None:
            thinning = self._thinning[table] = Thinning(ROWS_BYTES)
        if thinning.stride > 1 and thinning.leaves_out(values[names.index(LOSS)] if LOSS in names else ABSENT):
            return False
        thinning.grow(_NUMBER_BYTES * len(names))
        self._rows.append(_Row(step, mode, seconds, names, values))
        if 0 <= seconds - self._rows_written_at < ROWS_SECONDS:
            return False
        self._rows_written_at = seconds
        return True

    def folder_for(self, root: Path, as_asked: bool) -> Path:
        """The folder for the files of a run.

        Args:
            root: the run's folder.
            as_asked: whether it is the one that was asked for. Several runs do not share a folder.
        """
        if self.folder is None:
            return root / FOLDER
        return self.folder if as_asked else self.folder / root.name

    def close(self) -> None:
        """Close the files; a step that follows begins new ones. Rows that wait are forgotten."""
        self._rows.clear()
        self._close_files()

    def _close_files(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files[1].close()

    # On the writer thread.

    def remove_old(self, root: Path, worker: str, process: tuple[int, str] | None) -> None:
        """Remove what an earlier run of a worker has left, whose steps are removed too.

        In a folder of its own, which may hold files of other runs, that is what the earlier process has written.

        Args:
            root: the run's folder.
            worker: the worker's name.
            process: pid and host of the one that had the run before; None where nobody knows.
        """
        try:
            if self.folder is None:
                remove_files_of(worker, root, f"{FOLDER}/")
            elif process is not None:
                remove_files_of(worker, self.folder, "", process)
        except OSError as error:
            guard.say_once((self, "old"), f"cannot remove an earlier run's files for TensorBoard ({error})")

    def write_rows(self, place: Callable[[], tuple[Path, bool]], worker: str) -> None:
        """Write the rows that wait; ``place`` and ``worker`` as in ``commit``."""
        while self._rows:
            row = self._rows.popleft()
            values = np.array(row.values, np.float64)
            known = is_there(values)
            step = BoardStep(row.step, row.mode, row.seconds, self._shown_in)
            step.add_scalars(tuple(name for name, there in zip(row.names, known, strict=True) if there), values[known])
            self._write(step, 0, place, worker)

    def _write(self, step: BoardStep, size: int, place: Callable[[], tuple[Path, bool]], worker: str) -> None:
        self._done += size
        if self._files is None or self._files[0] != worker:
            self._close_files()
            self._files = worker, BoardFiles(partial(self._place, place), worker)
        try:
            self._files[1].write(step)
        except OSError as error:
            where = "the run's folder" if self.folder is None else self.folder
            line = f"cannot write TensorBoard's files to {where} ({error}): the run goes on, further steps are tried"
            guard.say_once((self, "failed"), line)

    def _place(self, place: Callable[[], tuple[Path, bool]]) -> tuple[Path, str]:
        root, as_asked = place()
        folder = self.folder_for(root, as_asked)
        guard.say_once((self, folder), f"writing TensorBoard's files to {folder}")
        if self.folder is None:
            return root, f"{FOLDER}/"
        folder.mkdir(parents=True, exist_ok=True)
        return folder, ""


class BoardRows:
    """The rows of the series on their way to a board.

    Args:
        board: that shows them.
        submit: has something done on the writer thread.
        place: gives, there, the run's folder, and whether it is the one that was asked for.
        worker: gives the worker's name; empty as long as the run has not begun.
    """

    def __init__(
        self,
        board: RunBoard,
        submit: Callable[[Callable[[], None]], None],
        place: Callable[[], tuple[Path, bool]],
        worker: Callable[[], str],
    ) -> None:
        self._board, self._submit, self._place, self._worker = board, submit, place, worker

    @BOARD.fence("taking a row")
    def add(
        self, table: str, step: int, mode: ModeKeys, seconds: float, names: tuple[str, ...], values: Sequence[float]
    ) -> None:
        """Take a row."""
        if self._board.add_row(table, step, mode, seconds, names, values) and self._worker():
            self._submit(self.write)

    def write(self) -> None:
        """Write those that wait; on the writer thread."""
        BOARD.run("writing rows", lambda: self._board.write_rows(self._place, self._worker()))
