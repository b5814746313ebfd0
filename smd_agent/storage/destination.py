"""The destination of a run: a folder alone, a folder and a store, or a store alone.

Every run is written into a folder. One that goes to a store alone has a folder of its own for the way, which goes when
the program ends and the store has everything.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.formats.addresses import is_address, last_part, plain
from smd_agent.formats.paths import claim_path
from smd_agent.stalled_disk import in_time
from smd_agent.storage.run_folder import Continuation, RunFolder, absolute, is_folder_of, refusal, refuse_finished_run
from smd_agent.storage.stores import StoreFailure
from smd_agent.storage.uploads import Uploads
from smd_agent.storage.worker_notes import take_lost_steps

if TYPE_CHECKING:
    from smd_agent.formats.training_state import TrainingState
    from smd_agent.storage.board_files import RunBoard

# Where runs lie for which nobody has named a folder.
RUNS_FOLDER = "smd_runs"
# How the name of a folder begins that holds the one of a run on its way into a store.
_WAY = "smd_agent-"


@dataclass
class Destination:
    """The destination of a run.

    Attributes:
        folder: of the run.
        uploads: bring it into a store, if it goes into one.
    """

    folder: str
    uploads: Uploads = field(default_factory=Uploads)

    @classmethod
    def of(cls, out_dir: str, upload_to: str | None, patience: float) -> Destination:
        """Find out where a run can go; where the store that was asked for cannot be used, one line says so.

        Args:
            out_dir: folder of the run, or the address of a store.
            upload_to: address of a store where a run in a folder goes, too; None for nowhere.
            patience: seconds that the end of the run waits at most until the store has everything.
        """
        on_the_way = is_address(out_dir)
        if not on_the_way and upload_to is None:
            return cls(plain(out_dir))
        address = plain(out_dir if upload_to is None else upload_to)
        uploads = Uploads(address, patience, on_the_way)
        try:
            uploads.open()
        except StoreFailure as failure:
            folder = str(_instead_of(address)) if on_the_way else plain(out_dir)
            verb = "goes into" if on_the_way else "stays in"
            guard.say_once(("store", address), f"{address} is not used ({failure.strerror}): the run {verb} {folder}")
            return cls(folder)
        return cls(str(_on_the_way(address)) if on_the_way else plain(out_dir), uploads)

    def go_on_with(self, last: TrainingState | None) -> Continuation | None:
        """Prepare for a training that may be started again, and go on with the run of an earlier start.

        Returns:
            What this run goes on with in its folder, which may become another one; None if there is nothing.

        Args:
            last: where the training stood last; None if it begins.
        """
        store = self.uploads.go_on_with(last)
        if last is None or last.folder is None:
            return None
        root = Path(last.folder)
        if self.uploads.on_the_way:
            # What one process has left on its way; the folders of several are known to nobody but them.
            if store is None or store.claim != claim_path() or not _is_way(root, Path(self.folder).name):
                return None
            self.folder = str(root)
        return Continuation(root, last.seen) if is_folder_of(root, absolute(self.folder)) else None

    def refuse_finished_run(self) -> None:
        """Raise if there is a finished run.

        Raises:
            SMDebugRuntimeError: there is.
        """
        refuse_finished_run(self.folder)
        if self.uploads.finished_before:
            raise refusal(self.uploads.finished_before)


def make_way(folder: Path) -> None:
    """Make what is around the folder of a run that goes to a store alone, so that nobody else can look into it.

    Raises:
        OSError: that is not possible.
    """
    folder.parent.mkdir(mode=0o700, exist_ok=True)


def clear_way(folder: Path) -> None:
    """Remove a folder that a store has everything of, and what is around it unless there is more in there."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()


def _on_the_way(address: str) -> Path:
    # Not from `random`, whose state belongs to the program.
    return Path(tempfile.gettempdir(), f"{_WAY}{os.urandom(6).hex()}", last_part(address))


def _is_way(folder: Path, name: str) -> bool:
    """True if a folder of this name has been made for a run's way by a process of this user's on this machine."""
    around = folder.parent
    named = around.parent == Path(tempfile.gettempdir()) and folder.name == name
    if not named or re.fullmatch(f"{_WAY}[0-9a-f]{{12}}", around.name) is None:
        return False
    try:
        status = in_time(partial(os.lstat, around))
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def _instead_of(address: str) -> Path:
    here = Path.cwd()
    return (here if os.access(here, os.W_OK) else Path(tempfile.gettempdir())) / RUNS_FOLDER / last_part(address)


class RunPlace:
    """The place where one worker writes its part of a run.

    Args:
        folder: the run's.
        store: bring it into a store, if it goes into one.
        board: what TensorBoard gets of the run; None if nothing.
        continued: the run that this one goes on with; None if it begins one.

    Attributes:
        folder, store: as given.
        entered: whether the folder is this worker's.
        lost_before: the steps that could not be written of the run that this one goes on with.
    """

    def __init__(
        self, folder: RunFolder, store: Uploads, board: RunBoard | None, continued: Continuation | None
    ) -> None:
        self.folder = folder
        self.store = store
        self.entered = False
        self.lost_before: list[int] = []
        self._board = board
        self._continued = continued
        self._alone = True
        # Whether an earlier run's steps of this worker are to be removed once the folder is entered.
        self._removes_old = False
        self._has_gone_on = False

    @property
    def root(self) -> Path:
        """The folder that the run is written into, absolute."""
        return self.folder.root

    @property
    def location(self) -> str:
        """The run's folder or, if the run is in a store, its address; for messages."""
        return self.store.address or str(self.root)

    @property
    def whole_folder(self) -> str | None:
        """The folder, as long as it has all that was saved."""
        return str(self.root) if self.store.is_whole else None

    @property
    def relocated_because(self) -> str | None:
        """The reason why ``location`` is not the place that was asked for; None if it is."""
        return self.store.relocated_because or self.folder.reason

    def enter(self, worker: str, alone: bool, removes_old: bool) -> str | None:
        """Get the folder for a worker, and its place in the store; None when that has worked, else the reason why not.

        Args:
            worker: its name.
            alone: no other worker is known, so that the run may go into a folder of its own.
            removes_old: what an earlier run has left of this worker goes.

        Raises:
            OSError: no folder can be made or written.
        """
        self._alone = alone
        self._removes_old = removes_old
        return self.enter_again(worker)

    def enter_again(self, worker: str) -> str | None:
        """Enter as it was asked for last; what an earlier run has left is removed once."""
        self.entered = False
        if self.store.on_the_way:
            make_way(self.folder.named)
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
        if self.folder.goes_on or self.store.found is not None:
            self._go_on(worker)
        elif self._removes_old:
            self._removes_old = False
            self._remove_steps_of(worker)
        return None

    def clear_away(self) -> None:
        """Upload nothing more, and remove the folder if it was only on the way and the store has everything."""
        if self.store.end():
            clear_way(self.root)

    def _go_on(self, worker: str) -> None:
        """Make one run of what there is here, and in the store, of the one that goes on."""
        here: set[tuple[int, str]] = set()
        lost: set[int] = set()
        redone: set[int] = set()
        if self.folder.goes_on and self._continued is not None:
            lost.update(take_lost_steps(self.root, worker, until=self._continued.step))
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
