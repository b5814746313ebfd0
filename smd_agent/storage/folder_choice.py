"""The folder that a run is written into: the named one or, where that holds a run already, a new one beside it.

A folder holds one run. Where another process is writing, where a run has ended, and where one was cut off, nothing is
written over: who looks for the reason why a run was cut off needs its last steps. Only a training that goes on from a
checkpoint goes on in the folder of its run, from which the steps that it makes anew are removed.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats import paths
from smd_agent.formats.addresses import is_address
from smd_agent.stalled_disk import in_time
from smd_agent.storage.atomic_file import names_in, remove_file
from smd_agent.storage.claim import Claim, alive, is_gone, owner_text

# The newest steps of a run that was cut off, which are those that were being written.
_STEPS_IN_FLIGHT = 64
_OLD_SECONDS = 3600.0


def refuse_finished_run(out_dir: str) -> None:
    """Raise if the folder holds a finished run; ``~`` is expanded.

    Raises:
        SMDebugRuntimeError: it does.
    """
    root = absolute(out_dir)
    if holds_finished_run(root):
        raise refusal(root)


def refusal(place: Path | str) -> SMDebugRuntimeError:
    """The error for a finished run that is where a new one was to go."""
    return SMDebugRuntimeError(
        f"The path:{place} already exists and holds a finished run. "
        "Please provide a directory path that does not already exist."
    )


def absolute(out_dir: str) -> Path:
    """The folder as a whole path; ``~`` is expanded."""
    return Path(os.path.abspath(os.path.expanduser(out_dir)))


def holds_finished_run(root: Path) -> bool:
    """True if a run has ended in the folder; False where the disk does not say so in time."""
    try:
        return in_time(partial(_is_finished, root))
    except TimeoutError:
        return False


def obstacle(out_dir: str) -> str:
    """The reason why no run can be written into an absolute folder, or beside it, as far as a look tells; or "".

    An address is not looked at, and a disk that does not answer is asked again later.
    """
    if is_address(out_dir):
        return ""
    try:
        return in_time(partial(_obstacle, Path(out_dir)))
    except TimeoutError:
        return ""


def _obstacle(folder: Path) -> str:
    standing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not standing.is_dir():
        return f"{standing} is no folder"
    if not os.access(standing, os.W_OK | os.X_OK):
        return f"{standing} cannot be written by this user"
    return ""


class _NothingBeside(Exception):
    """No folder can be made beside the named one; from now on they are made inside of it."""


class Continuation(NamedTuple):
    """The run that a training goes on with, and its last step, over all modes, that is not made anew."""

    root: Path
    step: int


def is_folder_of(root: Path, named: Path) -> bool:
    """True if a run in the folder ``root`` may have been asked to go into the folder ``named``: both are absolute."""
    if root == named or (root.parent == named and re.fullmatch(r"run-\d+", root.name)):
        return True
    return root.parent == named.parent and re.fullmatch(rf"{re.escape(named.name)}-\d+", root.name) is not None


class RunFolder:
    """The place of one worker's run on disk; used by the writer thread alone, which may wait for it.

    Args:
        named: the folder that was asked for, absolute.
        finished_before: whether it held a finished run when this one was asked for.
        below: further runs get folders inside of it instead of beside it, because it alone is kept.
        continued: the run that this one goes on with, if its folder is there and nobody else's; None if there is none.

    Attributes:
        goes_on_after: the step behind which this run goes on with that one; None if it begins one.
        redone: the steps that were removed from it, in order.
        root: where the run is written; ``named`` until that turns out to be impossible.
        reason: why ``root`` is not ``named``; None if it is.
        earlier: pid and host of the process that had this worker's claim before, and left it behind; None if none did.
    """

    def __init__(
        self, named: Path, finished_before: bool, below: bool = False, continued: Continuation | None = None
    ) -> None:
        self.named = self.root = named
        self.reason: str | None = None
        self.goes_on_after: int | None = None
        self.redone: list[int] = []
        self.earlier: tuple[int, str] | None = None
        self._below = below
        self._continued = continued
        # The workers whose later steps have been removed; what is there now has been made anew.
        self._rid: set[str | None] = set()
        self._finished_before = finished_before
        # The one that was taken last, given up or not.
        self._claim: Claim | None = None
        # The one that is being taken.
        self._begun: Claim | None = None

    @property
    def is_ours(self) -> bool:
        """True if the folder is still there, and ours."""
        return self._claim is not None and self._claim.is_in_place()

    def enter_alone(self) -> None:
        """Get a folder for a run of one worker.

        Raises:
            OSError: no folder can be made or written.
        """
        self.leave()
        if self._go_on_as(None):
            return
        self.named.mkdir(parents=True, exist_ok=True)
        self.reason = _claim_empty(claim := self._begin_claim(self.named), self.named)
        self.root = self.named
        if self.reason is not None:
            self.root, claim = self._make_another()
        self._take(claim)

    def enter_as(self, worker: str) -> str | None:
        """Get a folder for one of several workers; None when that has worked, else the reason why not.

        It is the named one or, where a run has ended in that or another process has this worker's place, the first one
        beside it that has none of this worker's steps: the others come to the same one.

        Raises:
            OSError: no folder can be made or written.
        """
        self.leave()
        if self._go_on_as(worker):
            return None
        self.named.mkdir(parents=True, exist_ok=True)
        claim = self._begin_claim(self.named, worker)
        self.root, self.earlier = self.named, None
        self.reason = f"{self.named} holds a finished run" if self._finished_before else claim.acquire()
        if self.reason is None:
            owner = claim.owner() or {}
            pid, host = owner.get("pid"), owner.get("host")
            self.earlier = (pid, host) if isinstance(pid, int) and isinstance(host, str) else None
        else:
            self.root, claim = self._join_another(worker)
        claim.sign()
        self._take(claim)
        return None

    def claim_again(self) -> bool:
        """Take the claim of a folder that holds our steps and no claim file; False where there is one."""
        before = self._claim
        claim = self._begin_claim(self.root, None if before is None else before.worker)
        if os.path.lexists(claim.path) or claim.acquire() is not None:
            return False
        claim.sign()
        self._take(claim)
        if before is not None:
            before.release()
        return True

    def candidates(self) -> Iterator[Path]:
        """The folders that are there of those into which one of several workers goes."""
        yield self.named
        yield from itertools.takewhile(os.path.isdir, self._others())

    def anew(self) -> RunFolder:
        """The same for a run that begins, in a process that a fork has made."""
        return RunFolder(self.named, self._finished_before, self._below)

    def leave(self) -> None:
        """Give the folder up."""
        if self._claim is not None:
            self._claim.release()
        self._leave_begun()

    def _begin_claim(self, root: Path, worker: str | None = None) -> Claim:
        """The claim that is going to be taken; one that a failure has left half taken is given up before that."""
        self._leave_begun()
        self._begun = Claim(root, worker)
        return self._begun

    def _take(self, claim: Claim) -> None:
        self._claim, self._begun = claim, None

    def _leave_begun(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.back_out()

    def steps_of(self, worker: str | None) -> set[tuple[int, str]]:
        """The steps that the folder has of one worker or, with None, of all; each with its worker."""
        return {(step, name) for _, step, name in _steps_of(self.root, worker)}

    def remove_steps_of(self, worker: str) -> int:
        """Remove what an earlier run has left of a worker in the named folder, if that is entered; how many steps."""
        if self.root != self.named:
            return 0
        _remove_series(self.named, worker)
        return len(_remove_steps(self.named, worker))

    def _go_on_as(self, worker: str | None) -> bool:
        """Enter the folder of the run that this one goes on with, alone or as one of several workers, if possible."""
        self.goes_on_after = None
        if self._continued is None or not names_in(self._continued.root, paths.INDEX_FOLDER):
            return False
        root, step = self._continued
        claim = self._begin_claim(root, worker)
        refused = claim.acquire()
        if refused is None and worker is None:
            refused = _written_by_several(root)
            if refused is not None:
                claim.back_out()
        if refused is not None:
            return False
        if worker is None:
            _remove_temporaries(root, claim.owner())
        claim.sign()
        self._take(claim)
        self.root = root
        self.reason = None if root == self.named else f"the run that goes on is in {root}"
        self.redone = []
        if self._rid.isdisjoint((None, worker)):
            self._rid.add(worker)
            self.redone = _remove_steps(root, worker, after=step)
            remove_file(root, paths.END_MARKER)
        self.goes_on_after = step
        return True

    def _make_another(self) -> tuple[Path, Claim]:
        for folder in self._others():
            try:
                self._make(folder)
            except FileExistsError:
                continue
            except _NothingBeside:
                return self._make_another()
            claim = self._begin_claim(folder)
            try:
                if _claim_empty(claim, folder) is None:
                    return folder, claim
            except OSError:
                folder.rmdir()
                raise
        raise AssertionError("there are more numbers")

    def _join_another(self, worker: str) -> tuple[Path, Claim]:
        for folder in self._others():
            try:
                self._make(folder)
            except FileExistsError:
                if _is_finished(folder):
                    continue
            except _NothingBeside:
                return self._join_another(worker)
            claim = self._begin_claim(folder, worker)
            if claim.acquire() is not None:
                continue
            if next(_steps_of(folder, worker), None) is None:
                _remove_series(folder, worker)
                return folder, claim
            claim.back_out()
        raise AssertionError("there are more numbers")

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir()
        except FileExistsError:
            raise
        except OSError as error:
            if self._below or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self._below = True
            raise _NothingBeside from error

    def _others(self) -> Iterator[Path]:
        for number in itertools.count(2):
            beside = self.named.with_name(f"{self.named.name}-{number}")
            yield self.named / f"run-{number}" if self._below else beside


def _remove_steps(root: Path, worker: str | None, after: int = -1) -> list[int]:
    """Remove the steps behind one, of one worker or, with None, of all; those there were, in order."""
    found: set[int] = set()
    for file, step, name in _steps_of(root, worker):
        if step > after:
            remove_file(root, file)
            remove_file(root, paths.event_path(step, name))
            found.add(step)
    return sorted(found)


def _remove_series(root: Path, worker: str | None) -> None:
    """Remove the series that an earlier run has left of one worker or, with None, of all."""
    for name in names_in(root, paths.SERIES_FOLDER):
        parsed = paths.parse_series_file(name)
        if parsed is not None and worker in (None, parsed[0]):
            remove_file(root, f"{paths.SERIES_FOLDER}/{name}")


def _steps_of(root: Path, worker: str | None) -> Iterator[tuple[str, int, str]]:
    """The index files, with step and worker, that there are of one worker or, with None, of all."""
    for name in names_in(root, paths.INDEX_FOLDER):
        folder = f"{paths.INDEX_FOLDER}/{name}"
        for file in names_in(root, folder):
            step = paths.parse_step_file(file) if file.endswith(".json") else None
            if step is not None and worker in (None, step[1]):
                yield f"{folder}/{file}", *step


def _claim_empty(claim: Claim, root: Path) -> str | None:
    """Take the claim of a folder that holds no run; None when that has worked, else the reason why not."""
    refused = claim.acquire()
    if refused is not None:
        return refused
    # Only now: until we had it, another process may have had it, and ended its run.
    held = _finished(root) or _written_by_several(root)
    if held is None:
        owner = claim.owner()
        _remove_temporaries(root, owner)
        if not names_in(root, paths.INDEX_FOLDER):
            _remove_series(root, None)
            claim.sign()
            return None
        # Jobs that are not to be marked as ended give their claim up.
        held = f"{root} holds a run{' that was cut off' if owner is not None else ''}"
    claim.back_out()
    return held


def _finished(root: Path) -> str | None:
    return f"{root} holds a finished run" if _is_finished(root) else None


def _written_by_several(root: Path) -> str | None:
    for name in names_in(root):
        worker = paths.parse_worker_claim(name)
        owner = None if worker is None else Claim(root, worker).owner()
        if owner is not None and alive(owner):
            return f"{owner_text(owner)} is writing to {root}"
    return None


def _is_finished(root: Path) -> bool:
    return os.path.lexists(root / paths.END_MARKER)


def _remove_temporaries(root: Path, owner: dict[str, object] | None) -> None:
    """Remove the files that a process was writing when it was killed.

    ``owner`` is who the claim file names. Of one that is not known to be gone only old files are removed: there may be
    no locks between two hosts.
    """
    limit = time.time() - (0.0 if owner is not None and is_gone(owner) else _OLD_SECONDS)
    folders = ["", paths.COLLECTIONS_FOLDER, paths.LOST_FOLDER, paths.ABOUT_FOLDER]
    for name in (paths.EVENTS_FOLDER, paths.INDEX_FOLDER):
        folders += [f"{name}/{inner}" for inner in sorted(names_in(root, name))[-_STEPS_IN_FLIGHT:]]
    for folder in folders:
        for name in names_in(root, folder):
            if name.endswith(paths.TEMPORARY_SUFFIX):
                with suppress(OSError):
                    remove_file(root, f"{folder}/{name}" if folder else name, until=limit)
