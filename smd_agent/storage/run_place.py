"""The place of one worker's run: its folder and, for a run in a store, what is there; both are entered together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.storage.destination import clear_way, make_way
from smd_agent.storage.lost_steps import take_lost_steps
from smd_agent.storage.run_folder import Continuation, RunFolder

if TYPE_CHECKING:
    from smd_agent.storage.run_board import RunBoard
    from smd_agent.storage.uploads import Uploads


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
