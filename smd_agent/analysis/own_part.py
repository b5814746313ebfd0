"""The part of a run that one worker has written, as the verdict at the program's end reads it."""

from __future__ import annotations

from collections.abc import Mapping

from smd_agent.analysis.series import SeriesTable
from smd_agent.analysis.trial import Trial
from smd_agent.storage.index_files import StepIndex


class OwnPart(Trial):
    """The steps that one worker has written. None is read, and none is kept, before it is asked for.

    Args:
        dirname: the run's folder.
        worker: such as ``worker_0``.

    Raises:
        SMDebugRuntimeError: the collections file cannot be understood.
    """

    def __init__(self, dirname: str, worker: str) -> None:
        self._worker = worker
        super().__init__(dirname, dirname)

    def _open(self, timeout: float) -> None:
        self._collections.refresh()
        self.take_as_it_is()
        self.step_table.end()

    def saved_steps(self) -> list[int]:
        """Return the steps, counted over all modes."""
        return self._reader.steps_of(self._worker)

    def series_of_steps(self) -> dict[str, SeriesTable]:
        """Return its table that has one row for each step, by its name; none if it has not noted any."""
        return {worker: table for worker, table in super().series_of_steps().items() if worker == self._worker}

    def files_at(self, step: int) -> Mapping[str, StepIndex]:
        """Read what the worker has noted of one step: its index file by the worker's name; none if it is unreadable."""
        file = self._reader.index_of(step, self._worker)
        return {} if file is None else {file.worker: file}
