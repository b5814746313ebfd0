"""A run's folder as one worker writes it: steps, collections file, lost steps, end marker, and the count of it all.

Nothing is created, and no thread started, before the first step that is saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from smd_agent.core.failure_domains import BOARD, JOB_METRICS, WATCHING
from smd_agent.core.failure_record import Failure
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import Place
from smd_agent.core.requests import Requests
from smd_agent.formats.event_encoder import Stamp
from smd_agent.formats.notes import about_text, failures_text
from smd_agent.formats.series import PARAMETERS_TABLE, STEPS_TABLE
from smd_agent.formats.training_state import StorePlace
from smd_agent.storage.control_watch import ControlWatch
from smd_agent.storage.disk_failures import PASSING, Beginning
from smd_agent.storage.disk_space import FIRST_STEPS, LARGE_STEP, tell_forecast
from smd_agent.storage.folder_choice import Continuation, RunFolder, absolute, holds_finished_run
from smd_agent.storage.metrics_file import MetricsFile, MetricStep
from smd_agent.storage.run_tensorboard import BoardRows, RunBoard
from smd_agent.storage.series_writer import SeriesDisk, SeriesWriter
from smd_agent.storage.step_file import Growth, Layouts, StepFile
from smd_agent.storage.tensorboard_files import BoardStep
from smd_agent.storage.uploads import Uploads
from smd_agent.storage.watch_process import WatchProcess
from smd_agent.storage.worker_files import WorkerFiles
from smd_agent.storage.worker_place import RunPlace
from smd_agent.storage.writer_thread import DEFAULT_BUDGET_BYTES, Job, Writer

SERIES_BYTES = 64 << 20
# Of several in one run, its process alone is watched by another one, which reads what all have written.
FIRST_WORKER = "worker_0"


class RunWriter:
    """Writes the steps of one worker into a run folder.

    Args:
        out_dir: the run's folder; ``~`` is expanded. Where it holds a run already, a new folder beside it is used.
        dry_run: write the collections file and the end marker, but no step.
        budget_bytes: memory for values that wait for the disk.
        below: a further run's folder is made inside of ``out_dir``, not beside it.
        board: what TensorBoard gets of the run; None if nothing.
        continued: the run that this one goes on with; None if it begins one.
        metrics: what SageMaker's metrics get of it; None if nothing.
        uploads: bring the run into a store; it stays in its folder if None.
        tap: look for requests to the running training.
        series_bytes: size of the series' table of steps, half of which that of parameters may have; 0: there is none.
        watch: the process that asks rules while training goes on; None if there is to be none.

    Attributes:
        dry_run: the same.
        series: takes the rows of every step.
    """

    def __init__(
        self,
        out_dir: str,
        dry_run: bool = False,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        below: bool = False,
        board: RunBoard | None = None,
        continued: Continuation | None = None,
        metrics: MetricsFile | None = None,
        uploads: Uploads | None = None,
        series_bytes: int = SERIES_BYTES,
        tap: bool = True,
        watch: WatchProcess | None = None,
    ) -> None:
        self.dry_run = dry_run
        self._watch = None if dry_run else watch
        self._budget_bytes = budget_bytes
        # What gets numbers of the run beside its folder.
        self._others = board, metrics
        # Whether a worker has been left: it gets the first steps of a run that others have begun.
        self._met_late = False
        self._forecast = False
        limits = {STEPS_TABLE: series_bytes, PARAMETERS_TABLE: series_bytes // 2}

        def submit(job: Job) -> None:
            self._writer.submit(job)

        disk = SeriesDisk(
            submit=submit,
            place=lambda: self._at.current(),
            failed=lambda failure: self._at.failures.write_failed(failure),
            upload=lambda name: self._at.store.add(self._at.root, name),
            also=None
            if board is None
            else BoardRows(board, submit, lambda: self._at.board_place(), lambda: self.worker),
        )
        self.series = SeriesWriter(limits if series_bytes and not dry_run else {}, disk)
        self._control = ControlWatch(lambda: self._at.root, lambda: self._at.folder.candidates()) if tap else None
        named = absolute(out_dir)
        folder = RunFolder(named, holds_finished_run(named), below, continued)
        self._make_ready(RunPlace(folder, Uploads() if uploads is None else uploads, board))

    def _make_ready(self, at: RunPlace) -> None:
        self._at = at
        # Whether the last ``close`` set the end mark; None: there is something to close.
        self._closed: bool | None = None
        self._layouts = Layouts()
        self._writer = Writer(self._budget_bytes, at.failures.write_failed)

    @property
    def saved(self) -> Growth:
        """The content of the folder."""
        return self._at.saved

    @property
    def root(self) -> Path:
        """The folder that the run is written into, absolute."""
        return self._at.root

    @property
    def location(self) -> str:
        """The run's folder or, if the run is in a store, its address; for messages."""
        return self._at.location

    @property
    def folder(self) -> str | None:
        """The folder, as long as it has all that was saved."""
        return str(self.root) if self._at.store.is_whole else None

    @property
    def relocated_because(self) -> str | None:
        """The reason why ``location`` is not the place that was asked for; None if it is."""
        return self._at.relocated_because

    @property
    def place(self) -> StorePlace | None:
        """The place of the run in a store, for a later start of the training; None as long as it is in none."""
        return self._at.store.place

    @property
    def worker(self) -> str:
        """The worker that writes; empty before ``start``."""
        return "" if self._at.files is None else self._at.files.worker

    @property
    def started(self) -> bool:
        """True if ``start`` has been called."""
        return self._at.files is not None

    @property
    def steps_lost(self) -> int:
        """Number of steps that could not be written."""
        return 0 if self._at.files is None else len(self._at.files.lost.steps)

    def start(self, worker: str, alone: bool) -> str | None:
        """Make a folder ready for this worker.

        A disk that is full or stands still is no error: steps are lost as long as that lasts.

        Args:
            worker: name used in file names, such as ``worker_0``.
            alone: no other worker is known, so that the run may go into a folder of its own.

        Returns:
            None, or why this worker cannot write into the run's folder.

        Raises:
            OSError: the folder cannot be made or written.
        """
        beginning = Beginning()
        removes_old = not alone and not self._met_late
        self._writer.submit(partial(self._at.begin, beginning, worker, alone, removes_old))
        self._writer.submit(lambda: self.series.enter(self._at.root) if self._at.entered else None)
        if not self._writer.drain():
            beginning.given_up = True
            self._at.failures.start_given_up()
        elif beginning.refused is not None:
            self._writer.close()
            return beginning.refused
        elif beginning.failure is not None and beginning.failure.errno not in PASSING:
            self._writer.close()
            raise beginning.failure
        self._at.files = WorkerFiles(worker)
        self._at.files.lost.steps += self._at.lost_before
        self.series.begin(worker)
        if self._watch is not None and (alone or worker == FIRST_WORKER):
            self._writer.submit(partial(WATCHING.run, "starting", partial(self._watch.begin, self._at)))
        return None

    def leave(self) -> None:
        """Put on disk what this worker has saved, give the folder up, and have no worker until the next ``start``."""
        self._close(end_marker=False)
        self.series.leave()
        self._met_late = True
        self._at.files = None

    def begin_anew(self) -> None:
        """Forget everything, in a process that a fork has made: folder and thread are its parent's."""
        self.series.begin_anew()
        if self._control is not None:
            self._control.begin_anew()
        if self._watch is not None:
            self._watch.begin_anew()
        self._at.store.begin_anew()
        self._make_ready(RunPlace(self._at.folder.anew(), self._at.store, self._others[0]))
        _close_all(*self._others)

    def begin_step(self, step: int, mode: ModeKeys, mode_step: int) -> StepFile:
        """Open the file of one step."""
        self._closed = None
        stamp = Stamp(step, mode, mode_step, time.time())
        return StepFile(self._at.current, self.worker, stamp, self._writer, self._layouts, *self._shown(stamp))

    def commit(self, step: StepFile, steps_among: Callable[[ModeKeys, int], int] | None = None) -> None:
        """Put a filled step on disk, in the background; say what steps take when the first large one comes.

        ``steps_among`` tells how many of the first steps of a mode are saved.
        """
        if step.lost:
            self._at.failures.step_given_up(step.stamp.step)
            self._at.lose(step.stamp.step)
        elif not step.is_empty:
            self._at.store.expect(step.stamp.step)
        self._hand_over(step, ended=True)
        if not self._forecast and steps_among is not None and step.size >= LARGE_STEP:
            self._forecast = True
            saved = steps_among(step.stamp.mode, FIRST_STEPS)
            self._writer.submit(partial(tell_forecast, step.size, saved, lambda: self.root))

    def publish(self, step: StepFile) -> None:
        """Put what a step has so far on disk, in the background; it may get more until it is committed."""
        if not step.lost and not step.is_empty:
            self._hand_over(step, ended=False)
            step.board, step.metrics = self._shown(step.stamp)

    def write_collections(self, text: str) -> None:
        """Put the collections file in place, in the background; if that fails, again with every step and at the end.

        The first one is waited for: without it, rows of the series cannot be read.
        """
        if self._at.files is not None and text != self._at.files.collections.text:
            is_first = self._at.files.collections.text is None
            self._at.files.collections.text = text
            self._closed = None
            self._writer.submit(self._at.put_files)
            if is_first:
                self._writer.drain(last_look=False)

    def write_about(self, environment: Mapping[str, Mapping[str, str]], took: tuple[float, float] | None) -> None:
        """Note where this worker runs, and what saving took; put in place with the next step, and at the end."""
        if self._at.files is not None:
            self._at.files.about.text = about_text(environment, took)

    def write_failures(self, failures: Sequence[Failure]) -> None:
        """Note what has failed of the agent's, in the background."""
        if self._at.files is not None and failures:
            self._at.files.failures.text = failures_text(failures)
            self._closed = None
            self._writer.submit(self._at.put_files)

    def write_bundle(self, folder: str, tensors: Sequence[bytes | memoryview], text: str) -> None:
        """Put what a step was given in place, in the background; the file that names its tensors comes last."""
        self._closed = None
        self._writer.submit(partial(self._at.put_bundle, folder, tensors, text))

    def listen(self, requests: Requests | None, place: Place) -> None:
        """Look for requests to this worker from now on, or no more; called again, nothing happens."""
        if self._control is not None:
            self._control.listen(requests, self._writer, place)

    def flush(self, last_look: bool = True) -> bool:
        """Wait until all committed steps are on disk; False when it stands still. ``last_look``: see ``drain``."""
        self.series.flush()
        return self._writer.drain(last_look)

    def close(self, end_marker: bool) -> None:
        """Wait for the disk, mark the run as ended and give the folder up. Can be called again after further steps.

        A store is waited for, too, until it has everything.
        """
        self._close(end_marker)
        if self.started:
            self._at.store.finish()

    def clear_away(self) -> None:
        """Leave no thread and no file that the run has no use for any more."""
        self._at.clear_away()

    def _close(self, end_marker: bool) -> None:
        is_closed = bool(self._closed) or self._closed is end_marker
        if not self.started or (is_closed and not self.series.has_files):
            return
        collections = None if self._at.files is None else self._at.files.collections
        self.series.flush()
        self._writer.submit(partial(self._end, end_marker))
        self._writer.submit(self._at.folder.leave)
        if not self._writer.close():
            self._at.failures.end_given_up()
            return
        if collections is not None:
            self._at.failures.look_at(collections)
        if collections is None or collections.failure is None:
            self._closed = end_marker

    def summary(self, more: str = "") -> str:
        """One line on what has been saved; ``more`` follows its size."""
        lost = self._at.files.lost.words if self._at.files else ""
        beside = sum(file.size for file in self._at.files or ()) + self.series.size
        saved = f"saved {self.saved.text(beside, more)}{lost}{self._at.store.words}"
        return f"{saved}; to see them: python -m smd_agent ls {self.location}" if self._at.entered else saved

    def _shown(self, stamp: Stamp) -> tuple[BoardStep | None, MetricStep | None]:
        board, metrics = self._others
        shown = None if board is None else BOARD.run("beginning", partial(board.begin_step, stamp))
        return shown, None if metrics is None else JOB_METRICS.run("beginning", partial(metrics.begin_step, stamp))

    def _hand_over(self, step: StepFile, ended: bool) -> None:
        step.put_in_place(partial(self._at.note_saved, step, ended), partial(self._at.lose, step.stamp.step))
        (board, metrics), of_board, of_metrics = self._others, step.board, step.metrics
        if board is not None and of_board is not None:
            commit = board.commit
            BOARD.run("writing", lambda: commit(of_board, self._writer.submit, self._at.board_place, self.worker))
        if metrics is not None and of_metrics is not None:
            JOB_METRICS.run("writing", partial(metrics.commit, of_metrics, self._writer.submit))

    # On the writer thread.
    def _end(self, end_marker: bool) -> None:
        self.series.close()
        _close_all(*self._others)
        self._at.end(end_marker)


def _close_all(*others: RunBoard | MetricsFile | None) -> None:
    """Close files that are no part of the run."""
    for other in others:
        if other is not None:
            other.close()
