"""The restarts of a training: it goes on with the numbers that a checkpoint of it had, in the same run.

Where the program keeps its checkpoints is named as in SageMaker, see ``config.checkpoints``. Beside them is noted, for
each, where the training stood; the newest of these notes is where a training that is started again goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.config import env
from smd_agent.config.job_files import checkpoint_folder
from smd_agent.core.clock import ModeClock, RunPosition, WatchedPosition
from smd_agent.core.failure_domains import RESTARTS
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.training_state import StorePlace, TrainingState
from smd_agent.storage.state_keeper import StateKeeper, path_of, read_states

if TYPE_CHECKING:
    from smd_agent.core.hook import BaseHook
    from smd_agent.storage.destination import Destination
    from smd_agent.storage.folder_choice import Continuation
    from smd_agent.storage.run_writer import RunWriter


class Restarts:
    """The knowledge of one hook of earlier starts of its training, and its notes for later ones.

    Args:
        destination: of the run, which may become the one that the last start has left.

    Attributes:
        position: makes what counts the hook's steps.
        continued: the folder's run that the hook goes on with; None if there is none.
    """

    def __init__(self, destination: Destination) -> None:
        named = checkpoint_folder() if env.use_smdebug() else None
        self._folder = None if named is None else Path(named)
        self._states: list[TrainingState] = []
        if self._folder is not None:
            read = partial(self._read, self._folder)
            # Tried twice: without them the training's steps would have other numbers.
            failure = guard.attempt(read) and guard.attempt(read)
            if failure is not None:
                line = f"{path_of(self._folder)} cannot be read ({guard.describe(failure)}): steps are counted from 0"
                guard.say_once(("training states", self._folder), line)
        # The later one of two that are as far, as a training has it that was redone.
        self._last = max(self._states, key=lambda state: (state.seen, state.training_run), default=None)
        self.position: Callable[[ModeClock], RunPosition] = RunPosition if self._folder is None else WatchedPosition
        self.continued: Continuation | None = None
        if self._folder is not None:
            self.continued = destination.go_on_with(self._last)
        self._keeper: StateKeeper | None = None

    def begin(self, hook: BaseHook, writer: RunWriter) -> None:
        """Give the hook the numbers it goes on with, and have it noted where it stands; no step has begun.

        Args:
            hook: the hook.
            writer: of its run.
        """
        if self._folder is None or not isinstance(hook.position, WatchedPosition):
            return
        if self._last is not None:
            hook.recorder.go_on_after(self._last.seen, self._last.mode_steps)
            line = f"steps go on after {self._last.seen}, as {path_of(self._folder)} says"
            guard.say_once(("steps go on", self._folder), line)
        hook.position.before_step = partial(self._start, hook, hook.position, self._folder, writer)

    def settle(self) -> None:
        """Have the state of a checkpoint that is complete on disk."""
        if self._keeper is not None:
            self._keeper.settle()

    def stop(self) -> None:
        """Note nothing more."""
        if self._keeper is not None:
            self._keeper.stop()

    def _read(self, folder: Path) -> None:
        self._states = read_states(folder)

    @RESTARTS.fence("looking for checkpoints")
    def _start(self, hook: BaseHook, position: WatchedPosition, folder: Path, writer: RunWriter) -> None:
        """Begin to look for checkpoints: the first step is about to begin."""
        position.before_step = bool
        if hook.worker()[0] == 0 or hook.recorder.output.include_workers == "all":
            now = partial(self._now, hook, writer)
            keeper = StateKeeper(folder, self._states, now, lambda: hook.worker()[0] == 0, hook.recorder.reach_disk)
            if keeper.start():
                self._keeper = keeper
                position.before_step = keeper.before_step

    def _now(self, hook: BaseHook, writer: RunWriter) -> TrainingState:
        recorder, position = hook.recorder, hook.position
        saved: int | None = recorder.step_saved
        if saved is not None and saved <= position.before:
            saved = None if self._last is None else self._last.saved
        folder, store = self._place(hook, writer)
        mode_steps = {mode: clock.step for mode, clock in recorder.clocks.items() if clock.step >= 0}
        return TrainingState(
            training_run=1 if self._last is None else self._last.training_run + 1,
            saved=saved,
            seen=position.newest,
            mode_steps={**mode_steps, ModeKeys.GLOBAL: position.newest},
            folder=folder,
            store=store,
        )

    def _place(self, hook: BaseHook, writer: RunWriter) -> tuple[str, StorePlace | None]:
        """The place of the run. As long as this start has saved nothing, that is where the last one has left it."""
        if not writer.started and self._last is not None:
            return self._last.folder or str(writer.root), self._last.store
        store = writer.place
        if store is not None and hook.recorder.unfinished:
            store = store._replace(waiting=(*store.waiting, hook.recorder.step_saved))
        return str(writer.root), store
