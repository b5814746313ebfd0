"""A run's folder as one worker writes it: claim, steps, collections file, end marker, and the count of it all.

Nothing is created, and no thread started, before the first step that is saved.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

from smd_agent import guard
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.encoder import Stamp
from smd_agent.formats.paths import END_MARKER, collections_path
from smd_agent.storage.claim import Claim, refuse_finished_run
from smd_agent.storage.collections_file import CollectionsFile
from smd_agent.storage.step_file import Layouts, StepFile
from smd_agent.storage.whole_file import replace_file
from smd_agent.storage.writer import DEFAULT_BUDGET_BYTES, Writer


class RunWriter:
    """Writes the steps of one worker into a run folder.

    Args:
        out_dir: the run's folder; ``~`` is expanded. It may exist, but must not hold a finished run.
        dry_run: write the collections file and the end marker, but no step.
        budget_bytes: memory for values that wait for the disk.

    Raises:
        SMDebugRuntimeError: the folder holds a finished run.
    """

    def __init__(self, out_dir: str, dry_run: bool = False, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self.root = Path(os.path.abspath(os.path.expanduser(out_dir)))
        refuse_finished_run(self.root)
        self.dry_run = dry_run
        self.steps_saved = 0
        self.steps_lost = 0
        self.tensors_saved = 0
        self.bytes_saved = 0
        self._worker = ""
        self._claim: Claim | None = None
        self._layouts = Layouts()
        self._writer = Writer(budget_bytes, self._failed)
        self._collections: CollectionsFile | None = None

    @property
    def location(self) -> str:
        """The run's folder, absolute."""
        return str(self.root)

    @property
    def started(self) -> bool:
        """Whether ``start`` has been called."""
        return bool(self._worker)

    def start(self, worker: str, alone: bool) -> str | None:
        """Make the folder ready for this worker.

        Args:
            worker: name used in file names, such as ``worker_0``.
            alone: no other worker is known, so another process on the same folder would overwrite our files.

        Returns:
            None, or a description of the process that already writes into this folder.

        Raises:
            OSError: the folder cannot be made or written.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        if alone and not self.dry_run:
            claim = Claim(self.root)
            owner = claim.acquire()
            if owner is not None:
                return owner
            self._claim = claim
        self._worker = worker
        self._collections = CollectionsFile(self.root / collections_path(worker))
        return None

    def leave(self) -> None:
        """Put on disk what this worker has saved, give the folder up, and have no worker until the next ``start``."""
        self.close(end_marker=False)
        self._worker = ""
        self._collections = None

    def holds_steps(self) -> bool:
        """Whether an earlier, unfinished run left steps in the folder."""
        index = self.root / "index"
        return index.is_dir() and any(index.iterdir())

    def begin_step(self, step: int, mode: ModeKeys, mode_step: int) -> StepFile:
        """Open the file of one step."""
        stamp = Stamp(step, mode, mode_step, time.time())
        return StepFile(self.root, self._worker, stamp, self._writer, self._layouts)

    def commit(self, step: StepFile) -> None:
        """Put a filled step on disk, in the background."""
        if step.lost:
            self.steps_lost += 1
            line = f"{self.root} takes no more data: step {step.stamp.step} is not saved"
            guard.say_once(("stalled disk", self.root), line)
        if self._collections is not None and self._collections.failure is not None:
            self._put(self._collections)
        step.commit(partial(self._saved, step))

    def write_collections(self, text: str) -> None:
        """Put the collections file in place, in the background; if that fails, again with every step and at the end."""
        if self._collections is not None and text != self._collections.text:
            self._collections.text = text
            self._put(self._collections)

    def flush(self) -> bool:
        """Wait until all committed steps are on disk; False when the disk stands still."""
        return self._writer.drain()

    def close(self, end_marker: bool) -> None:
        """Wait for the disk, mark the run as ended and give the folder up. Can be called again after further steps."""
        collections = self._collections
        if collections is not None:
            self._put(collections)
        if end_marker and self.started:
            self._writer.submit(self._mark_end)
        if not self._writer.close():
            guard.say(f"{self.root} takes no more data: the last steps may be missing")
        if collections is not None and collections.failure is not None:
            lacks = (
                "lacks the newest names" if collections.exists else "is missing, which collections there are is unknown"
            )
            line = f"the collections file {collections.path} {lacks} ({collections.failure.strerror})"
            guard.say_once(("no collections", collections.path), line)
        if self._claim is not None:
            self._claim.release()

    def summary(self) -> str:
        """One line on what has been saved."""
        lost = f"; {self.steps_lost} could not be written" if self.steps_lost else ""
        steps = "1 step" if self.steps_saved == 1 else f"{self.steps_saved} steps"
        saved = f"saved {steps} ({self.tensors_saved} values, {_size(self.bytes_saved)}){lost}"
        return f"{saved}; to see them: python -m smd_agent ls {self.root}"

    def _saved(self, step: StepFile) -> None:
        self.steps_saved += 1
        self.tensors_saved += step.tensors
        self.bytes_saved += step.size

    def _put(self, collections: CollectionsFile) -> None:
        self._writer.submit(partial(self._put_now, collections))

    def _put_now(self, collections: CollectionsFile) -> None:
        failure = guard.attempt(collections.put)
        if failure is not None:
            self._tell(failure)

    def _mark_end(self) -> None:
        # A run that has ended without a collections file cannot be read; one that was cut off can.
        if self._collections is None or self._collections.text is None or self._collections.exists:
            replace_file(self.root / END_MARKER, b"")

    def _failed(self, error: Exception) -> None:
        self.steps_lost += 1
        self._tell(error)

    def _tell(self, error: Exception) -> None:
        line = f"cannot write to {self.root} ({error}): the run goes on, further steps are tried"
        guard.say_once(("failed write", self.root), line)


def _size(count: float) -> str:
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        del units[0]
    return f"{count:.0f} bytes" if units[0] == "bytes" else f"{count:.1f} {units[0]}"
