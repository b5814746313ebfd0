"""The part of a run that is in a store, as the writer of the run sees it; without a store nothing happens in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.formats import paths
from smd_agent.formats.index import IndexParser
from smd_agent.regular_file import LARGEST_TEXT_BYTES, read_text
from smd_agent.storage.destination import clear_way, make_way

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from smd_agent.formats.training_state import StorePlace
    from smd_agent.storage.store_stay import Found
    from smd_agent.storage.uploads import Uploads


class StoredRun:
    """What one worker has in a store.

    Args:
        uploads: bring it there; None where the run stays in its folder.
    """

    def __init__(self, uploads: Uploads | None) -> None:
        self._uploads = uploads
        self._worker = ""
        self._forked = False

    @property
    def address(self) -> str | None:
        """Where the run is to be read, if that is not its folder."""
        return self._uploads.address if self._uploads is not None and self._uploads.is_only_place else None

    @property
    def reason(self) -> str | None:
        """Why that is not the address that was asked for; None if it is."""
        return self._uploads.reason if self._uploads is not None and not self._uploads.failed else None

    @property
    def leaves_all(self) -> bool:
        """Whether the run's folder still has all that was saved."""
        return self._uploads is None or self._uploads.is_whole

    @property
    def obstacle(self) -> str | None:
        """Why no further step may be written into the run's folder."""
        if self._uploads is None or not self._uploads.is_full:
            return None
        return f"too much of the run waits to be taken by {self._uploads.address}"

    @property
    def words(self) -> str:
        """Where the run is beside its folder, for its summary."""
        if self._uploads is None or not self._worker or self._uploads.failed or self.address is not None:
            return ""
        return f"; it is in {self._uploads.address}, too"

    @property
    def place(self) -> StorePlace | None:
        """Where the run is, for a later start of the training; None as long as it is in no store."""
        return self._uploads.place if self._uploads is not None and self._worker else None

    @property
    def found(self) -> Found | None:
        """What was there of the run that this one goes on with; None where it does not go on with one there."""
        return self._uploads.found if self._uploads is not None and self._worker else None

    def make_way(self, folder: Path) -> None:
        """Make what is around the run's folder, where that is only on the way.

        Raises:
            OSError: that is not possible.
        """
        if self.address is not None:
            make_way(folder)

    def enter(self, root: Path, worker: str, alone: bool, removes_old: bool) -> str | None:
        """Get a place for a worker; see ``Uploads.enter``. Where the store fails, the run stays in its folder."""
        uploads = self._uploads
        if self._forked or (uploads is not None and not uploads.is_ours):
            self.begin_anew()
            line = f"a process made by a fork uploads nothing: what it saves stays in {root}"
            guard.say_once((self, "forked", root), line)
            return None
        if uploads is None or uploads.failed or worker == self._worker:
            return None
        from smd_agent.storage.stores import StoreFailure

        try:
            refused = uploads.enter(root, worker, alone, removes_old)
        except StoreFailure as failure:
            guard.say(f"{uploads.address} is not used ({failure.strerror}): the run stays in {root}")
            return None
        self._worker = worker if refused is None else ""
        return refused

    def add(self, root: Path, name: str, *before: str) -> None:
        """Have a file of the run's folder uploaded, after others."""
        if self._uploads is not None and self._worker:
            self._uploads.add(root, name, *before)

    def add_missing(self, root: Path, steps: Iterable[tuple[int, str]]) -> None:
        """Have steps uploaded that an earlier start has left in the run's folder, where they are not in the store."""
        if self._uploads is None or not self._worker:
            return
        there = frozenset() if self.found is None else self.found.there
        parser = IndexParser()
        for part in sorted({*steps} - there):
            # An index that is damaged is of no use there either.
            guard.attempt(partial(self._add_step, root, paths.index_path(*part), parser))

    def expect(self, step: int) -> None:
        """Note that a step is about to be saved."""
        if self._uploads is not None and self._worker and not self._uploads.failed:
            self._uploads.expected.add(step)

    def expect_no_more(self, step: int) -> None:
        """Note that a step could not be saved."""
        if self._uploads is not None:
            self._uploads.expected.discard(step)

    def add_all_in(self, root: Path, folder: str) -> None:
        """Have all files uploaded that are in a folder of the run's, or below it."""
        if self._uploads is not None and self._worker:
            for path in sorted((root / folder).rglob("*")):
                if path.is_file():
                    self._uploads.add(root, path.relative_to(root).as_posix())

    def finish(self) -> None:
        """Wait until the store has everything, as long as that has a point."""
        if self._uploads is not None and self._worker:
            self._uploads.finish()

    def clear_away(self, root: Path) -> None:
        """Upload nothing more, and remove the run's folder if it was only on the way and the store has everything."""
        if self._uploads is not None and self._uploads.end() and self._worker:
            clear_way(root)

    def _add_step(self, root: Path, index: str, parser: IndexParser) -> None:
        event = parser.parse(read_text(root / index, largest=LARGEST_TEXT_BYTES)).event_file
        if event is None:
            self.add(root, index)
        elif (root / event).is_file():
            # Else it has been given up: of a run that lies here on its way only, many are.
            self.add(root, index, event)

    def begin_anew(self) -> None:
        """Forget it, in a process that a fork has made: what uploads is its parent's."""
        self._forked = self._forked or self._uploads is not None
        self._uploads = None
        self._worker = ""
