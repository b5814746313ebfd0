"""The right to write into a run's folder: a lock on its claim file, which the system takes back when the process ends.

The old library left an empty claim file behind after a crash and then wrote nothing on the next start. A lock ends with
its process, whatever ends that, and is given to one process only, however many ask at once; what the file says is for
people and for ``ls``. Where the file system has no locks, the process that creates the file has the claim. One that was
left behind there is set aside if it names a process of this machine that is gone. Else it has to be removed by hand: a
writer on another machine may live, and have no reason to touch a file for hours. What the file says tells readers, too,
whether a run goes on or was cut off.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from smd_agent.core.json_fields import object_in
from smd_agent.descriptors import open_above
from smd_agent.formats import paths
from smd_agent.formats.paths import TEMPORARY_SUFFIX, claim_path
from smd_agent.regular_file import open_to_read, read_text
from smd_agent.storage.after_fork import do_in_children, leave_to_children

if sys.platform == "win32":
    fcntl: Any = None
else:
    import fcntl

_LARGEST_BYTES = 1 << 16

# So often the file may have been removed by its last owner between the moments in which we open and lock it.
_ATTEMPTS = 100


class Claim:
    """The claim file of one run folder, or of one worker of several in it.

    Args:
        root: the run's folder.
        worker: the worker's name; None for a run that has no other.

    Attributes:
        worker: the same.
        path: of the file.
    """

    def __init__(self, root: Path, worker: str | None = None) -> None:
        self.worker = worker
        self.path = root / claim_path(worker)
        self._descriptor = -1
        self._number = (0, 0)
        self._text = ""
        self._created = False
        # What the file said that was in the way.
        self._before = ""

    @property
    def held(self) -> bool:
        """True if it was taken and has not been given up."""
        return self._descriptor >= 0

    def acquire(self) -> str | None:
        """Take the claim; None when it is ours, else what is in the way, such as a process that has it.

        Raises:
            OSError: there can be no file, because the disk is full or the folder is not ours to write into.
        """
        for _ in range(_ATTEMPTS):
            try:
                self._open()
            except OSError as error:
                if not os.path.lexists(self.path):
                    raise
                return f"{self.path} cannot be opened: {error.strerror}"
            works = _lock(self._descriptor)
            if works is None and not self._created and self._set_aside():
                self.drop()
                continue
            refused = self._obstacle(works)
            if refused is None and (works is None or self._number == _number_of(self.path)):
                return None
            self.drop()
            if refused is not None:
                return refused
        return f"{self.path} is another file each time it is opened"

    def sign(self) -> None:
        """Write into the file who has it; a disk that is full does not matter."""
        self._put(json.dumps({**_identity(os.getpid()), "mark": os.urandom(8).hex()}))
        self._before = ""

    def is_in_place(self) -> bool:
        """True if the file that was claimed is still the one in the folder."""
        if not self.held:
            return False
        if _number_of(self.path) == self._number:
            return True
        # Some file systems give a file another number each time.
        try:
            return bool(self._text) and read_text(self.path, largest=_LARGEST_BYTES) == self._text
        except (OSError, ValueError):
            return False

    def release(self) -> None:
        """Give the claim up and remove the file, if that is possible; nothing happens when it is not ours."""
        if self.is_in_place():
            with suppress(OSError):
                self.path.unlink()
        self.drop()

    def back_out(self) -> None:
        """Give the claim up and leave the folder as it was."""
        if self._before:
            self._put(self._before)
        elif self._created:
            self.release()
        self.drop()

    def drop(self) -> None:
        """Give the claim up and leave the file; in a process that a fork has made, its parent keeps it."""
        leave_to_children(self.drop)
        if self.held:
            os.close(self._descriptor)
            self._descriptor = -1

    def owner(self) -> dict[str, object] | None:
        """Whoever the claim file names (pid, host, start tick), or named before it was taken; None for nobody."""
        return owner_in(self._before or self._read())

    def _read(self) -> str:
        try:
            return read_text(self.path, largest=_LARGEST_BYTES)
        except (OSError, ValueError):
            return ""

    def _put(self, text: str) -> None:
        self._text = text
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)
        except OSError:
            return

    def _set_aside(self) -> bool:
        """Without locks: remove a file that a process of this machine has left; true if it was one."""
        text = self._read()
        owner = owner_in(text)
        known = owner is not None and owner.get("machine") is not None and owner["machine"] == _machine()
        if owner is None or not known or not is_gone(owner):
            return False
        aside = self.path.with_name(f"{self.path.name}.{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")
        try:
            self.path.rename(aside)
        except OSError:
            return False
        try:
            if read_text(aside, largest=_LARGEST_BYTES) != text:
                # Another process was faster, and this is its own. Where it cannot be put back, it will notice.
                os.link(aside, self.path)
                return False
        except (OSError, ValueError):
            return False
        finally:
            with suppress(OSError):
                aside.unlink()
        self._before = text
        return True

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            self._descriptor = open_above(self.path, flags | os.O_EXCL, 0o666)
            self._created = True
        except FileExistsError:
            self._descriptor = open_above(self.path, flags, 0o666)
            self._created = False
        # A child that lives longer would keep the lock of a parent that is gone. One may be forked while the lock is
        # waited for.
        do_in_children(self.drop)
        self._number = _number_of(self._descriptor)

    def _obstacle(self, locked: bool | None) -> str | None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return f"{self.path} is not a regular file"
        if locked is False:
            return f"{self._name_owner()} is writing to {self.path.parent}"
        if locked or self._created:
            return None
        return (
            f"{self._name_owner()} is named in {self.path}, and its file system has no locks that would tell whether "
            "that is over: remove the file if it is"
        )

    def _name_owner(self) -> str:
        owner = self.owner()
        if owner is None or is_gone(owner):
            # The one that has the lock has not signed yet.
            return "another process"
        if is_own(owner):
            return "this process"
        return owner_text(owner)


def _lock(descriptor: int) -> bool | None:
    """True if an open file is locked for this process now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        # Not lockf: that lock ends as soon as anything in the process closes the file after reading it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _number_of(file: Path | int) -> tuple[int, int]:
    """The number of a file, which tells it from all others, whatever its name; zeros if there is none."""
    try:
        status = os.stat(file) if isinstance(file, int) else os.stat(file, follow_symlinks=False)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _identity(pid: int) -> dict[str, object]:
    return {"pid": pid, "host": socket.gethostname(), "started": _start_time(pid), "machine": _machine()}


def _machine() -> str | None:
    """The mark of this machine, from its start on, and of its numbering of processes; None if unknown."""
    try:
        start = _told_by_system("/proc/sys/kernel/random/boot_id").strip()
        return f"{start} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Linux's start tick of a process, which tells it from a later one with the same pid; None elsewhere."""
    try:
        fields = _told_by_system(f"/proc/{pid}/stat").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[19]


def _told_by_system(path: str) -> str:
    # A file of no size; and the program may have put something in the place of pathlib's open.
    with open_to_read(path) as file:
        return file.readall().decode()


def owner_in(text: str | bytes) -> dict[str, object] | None:
    """Whoever the text of a claim file names; None when it names nobody."""
    owner = object_in(text)
    return owner if owner is not None and isinstance(owner.get("pid"), int) else None


def owner_text(owner: dict[str, object]) -> str:
    """The process that a claim file names, for messages."""
    return f"process {owner['pid']} on {owner.get('host')}"


def is_own(owner: dict[str, object]) -> bool:
    """True if a claim file names this process."""
    me = _identity(os.getpid())
    return {name: owner.get(name) for name in me} == me


def alive_here(owner: dict[str, object]) -> bool:
    """True if the process that a claim file names is known to run, on this machine."""
    return owner.get("host") == socket.gethostname() and alive(owner)


def alive(owner: dict[str, object]) -> bool:
    """True if the process that a claim file names still runs; one on another host is taken to."""
    pid = owner["pid"]
    assert isinstance(pid, int)
    if owner.get("host") != socket.gethostname():
        return True
    if pid == os.getpid():
        return owner.get("started") == _start_time(pid)
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return owner.get("started") in (None, _start_time(pid))


def is_gone(owner: dict[str, object]) -> bool:
    """True if the process that a claim file names is known to have ended; nothing is known of one on another host."""
    return owner.get("host") == socket.gethostname() and not alive(owner)


def describe_state(root: Path, last_file: Path | None) -> str:
    """Say in a few words what has become of a run.

    Args:
        root: the run's folder.
        last_file: the file it wrote last, None when there is none.
    """
    if (root / paths.END_MARKER).exists():
        return "finished"
    owner = Claim(root).owner()
    if owner is None or owner.get("host") != socket.gethostname():
        return f"not finished, {_last_sign(last_file)}"
    if alive(owner):
        return f"running as process {owner['pid']}, {_last_sign(last_file)}"
    return f"was cut off: process {owner['pid']} is gone, {_last_sign(last_file)}"


def _last_sign(last_file: Path | None) -> str:
    if last_file is None or not last_file.exists():
        return "no step written"
    return f"last step written {_ago(time.time() - os.stat(last_file).st_mtime)} ago"


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
