"""The place of one worker's run, as the writer thread fills it: its folder and, for a run in a store, what is there."""

from __future__ import annotations

import errno
import operator
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.formats.paths import BUNDLE_FILE, BUNDLE_TENSORS, END_MARKER
from smd_agent.storage.atomic_file import remove_file, replace_file
from smd_agent.storage.disk_failures import PASSING, Beginning, DiskFailures
from smd_agent.storage.folder_choice import RunFolder
from smd_agent.storage.staging import make_around, remove_with_around
from smd_agent.storage.step_file import Growth, StepFile
from smd_agent.storage.tensorboard_files import FOLDER
from smd_agent.storage.uploads import Uploads
from smd_agent.storage.worker_files import WorkerFiles
from smd_agent.storage.worker_files_reader import take_lost_steps

if TYPE_CHECKING:
    from smd_agent.storage.run_tensorboard import RunBoard


class RunPlace:
    """The place where one worker writes its part of a run; folder and store are entered together.

    Args:
        folder: the run's.
        store: bring it into a store, if it goes into one.
        board: what TensorBoard gets of the run; None if nothing.

    Attributes:
        folder, store: as given.
        files: small files beside the steps; None before there is a worker.
        saved: what is in the folder.
        entered: whether the folder is this worker's.
        lost_before: the steps that could not be written of the run that this one goes on with.
        failures: says what could not be written.
    """

    def __init__(self, folder: RunFolder, store: Uploads, board: RunBoard | None) -> None:
        self.folder = folder
        self.store = store
        self.files: WorkerFiles | None = None
        self.saved = Growth()
        self.entered = False
        self.lost_before: list[int] = []
        self.failures = DiskFailures(lambda: self.root)
        self._board = board
        self._alone = True
        # Whether an earlier run's steps of this worker are to be removed once the folder is entered.
        self._removes_old = False
        self._has_gone_on = False
        self._last_index = ""

    @property
    def root(self) -> Path:
        """The folder that the run is written into, absolute."""
        return self.folder.root

    @property
    def location(self) -> str:
        """The run's folder or, if the run is in a store, its address; for messages."""
        return self.store.address or str(self.root)

    @property
    def relocated_because(self) -> str | None:
        """The reason why ``location`` is not the place that was asked for; None if it is."""
        return self.store.relocated_because or self.folder.reason

    def begin(self, beginning: Beginning, worker: str, alone: bool, removes_old: bool) -> None:
        """Enter for a worker.

        Args:
            beginning: gets what has come of it.
            worker: its name.
            alone: no other worker is known, so that the run may go into a folder of its own.
            removes_old: what an earlier run has left of this worker goes.
        """
        self._last_index = ""
        self._alone = alone
        self._removes_old = removes_old
        failure = self._entering(beginning, worker)
        if failure is not None and not isinstance(failure, OSError):
            # Ours: without a folder everything would be lost.
            failure = self._entering(beginning, worker)
        if failure is not None:
            beginning.failure = failure if isinstance(failure, OSError) else OSError(guard.describe(failure))
            if beginning.given_up or beginning.failure.errno in PASSING:
                self.failures.write_failed(failure)
        if beginning.given_up and self.entered:
            self.failures.start_made_up(self.folder.named, self.relocated_because)

    def current(self) -> Path:
        """The run's folder, entered again where it has gone.

        Raises:
            OSError: there is none.
        """
        if (obstacle := self.store.obstacle) is not None:
            raise OSError(errno.EDQUOT, obstacle)
        if not self._is_there():
            before, gone = self.root, self._leave_behind()
            failure = guard.attempt(self._go_on)
            self.failures.folder_gone(before, gone, self.root if failure is None else None)
            if failure is not None:
                raise failure
        return self.root

    def board_place(self) -> tuple[Path, bool]:
        """The same, and whether it is the folder that was asked for."""
        root = self.current()
        return root, root == self.folder.named

    def note_saved(self, step: StepFile, ended: bool, growth: Growth) -> None:
        """Take note of a step that has been put in place, and may get more unless it has ended."""
        if not self._is_there():
            # It has gone since the step began, and another folder may have got the index alone.
            guard.attempt(partial(remove_file, self.root, step.index_name))
            self.lose(step.stamp.step)
            return
        self.saved = Growth(*map(operator.add, self.saved, growth))
        self._last_index = step.index_name
        self.put_files()
        if ended:
            # Not before: a file that changes while it is uploaded would not fit its index there.
            self.store.add(self.root, step.index_name, *step.event_names)

    def lose(self, step: int) -> None:
        """Take note of a step that could not be saved."""
        self.store.expect_no_more(step)
        # A step that is put in place several times is lost once.
        if self.files is not None and self.files.lost.steps[-1:] != [step]:
            self.files.lost.steps.append(step)

    def put_bundle(self, folder: str, tensors: Sequence[bytes | memoryview], text: str) -> None:
        """Put a bundle in place: its tensors, and then the file that says what they are."""
        names = [f"{folder}/{name}" for name in (BUNDLE_TENSORS, BUNDLE_FILE)]
        root = self.current()
        for name, content in zip(names, (tensors, [text.encode()]), strict=True):
            replace_file(root, name, *content)
        self.store.add(root, names[1], names[0])

    def put_files(self) -> None:
        """Put the small files in place that have changed."""
        if not self.entered or self.files is None:
            return
        self.files.lost.reason = self.failures.reason
        for file in self.files:
            if file.due:
                failure = guard.attempt(partial(file.put, self.root))
                if failure is not None:
                    self.failures.write_failed(failure)
                else:
                    self.store.add(self.root, file.path)

    def end(self, end_marker: bool) -> None:
        """Complete what there is and, if asked to, mark the run as ended.

        Raises:
            OSError: that cannot be done.
        """
        if self.entered and not self._is_there():
            self.failures.folder_gone(self.root, self._leave_behind(), None)
            return
        if not self.entered:
            self._go_on()
        self.put_files()
        self.store.add_all_in(self.root, FOLDER)
        # A run that has ended without a collections file cannot be read; one that was cut off can.
        collections = None if self.files is None else self.files.collections
        if end_marker and (collections is None or collections.text is None or collections.exists):
            replace_file(self.root, END_MARKER, b"")
            self.store.add(self.root, END_MARKER)

    def clear_away(self) -> None:
        """Upload nothing more, and remove the folder if it was only on the way and the store has everything."""
        if self.store.end():
            remove_with_around(self.root)

    def _entering(self, beginning: Beginning, worker: str) -> Exception | None:
        def enter() -> None:
            beginning.refused = self._enter(worker)

        return guard.attempt(enter)

    def _enter(self, worker: str) -> str | None:
        """Get the folder, and its place in the store; None when that has worked, else the reason why not.

        What an earlier run has left is removed once.
        """
        self.entered = False
        if self.store.on_the_way:
            make_around(self.folder.named)
        refused: str | None = None
        if self._alone:
            self.folder.enter_alone()
        else:
            refused = self.folder.enter_as(worker)
        if refused is None:
            refused = self.store.enter(self.root, worker, self._alone, self._removes_old)
            if refused is not None:
                self.folder.leave()
        if refused is not None:
            return refused
        self.entered = True
        if self.folder.goes_on_after is not None or self.store.found is not None:
            self._take_over(worker)
        elif self._removes_old:
            self._removes_old = False
            self._remove_steps_of(worker)
        return None

    def _is_there(self) -> bool:
        """True if the folder we are in is there and ours, as it is after ``close`` too."""
        if self.folder.is_ours:
            return True
        return bool(self._last_index) and (self.root / self._last_index).exists() and self.folder.claim_again()

    def _leave_behind(self) -> int:
        """Forget what was in the folder; the number of steps that have gone with it."""
        gone = self.saved.steps
        self.entered = False
        self._last_index = ""
        self.saved = Growth()
        if self.files is not None:
            self.files.forget()
            self.files.lost.gone += gone
        return gone

    def _go_on(self) -> None:
        refused = self._enter("" if self.files is None else self.files.worker)
        if refused is not None:
            raise OSError(errno.EBUSY, refused)
        self.put_files()

    def _take_over(self, worker: str) -> None:
        """Make one run of what there is here, and in the store, of the one that goes on."""
        here: set[tuple[int, str]] = set()
        lost: set[int] = set()
        redone: set[int] = set()
        if self.folder.goes_on_after is not None:
            lost.update(take_lost_steps(self.root, worker, until=self.folder.goes_on_after))
            redone.update(self.folder.redone)
            here.update(self.folder.steps_of(None if self._alone else worker))
            if not self._has_gone_on:
                self.store.add_missing(self.root, here)
        found = self.store.found
        if found is not None:
            redone.update(found.redone)
            missing = [step for step in found.missing if (step, worker) not in here]
            lost.update(found.lost, missing)
            self._say(missing, f"not in {found.address}, which had not taken all when the training was cut off")
        if not self._has_gone_on:
            self._say(sorted(redone), f"removed from {self.location}: the training makes them anew")
        self.lost_before = sorted(lost)
        self._has_gone_on = True

    def _say(self, steps: list[int], what: str) -> None:
        if steps:
            which = f"step {steps[0]} is" if len(steps) == 1 else f"{len(steps)} steps from {steps[0]} on are"
            guard.say_once((what, self.root), f"{which} {what}")

    def _remove_steps_of(self, worker: str) -> None:
        if self.folder.remove_steps_of(worker):
            line = f"{self.root} holds steps of an unfinished run: each worker removes its own"
            guard.say_once(("steps of several", self.root), line)
        if self._board is not None:
            self._board.remove_old(self.root, worker, self.folder.earlier)
