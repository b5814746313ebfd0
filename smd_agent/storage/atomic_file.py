"""Files of a run as they are made: under a name that nobody can guess, and put in place whole; or piece by piece.

Whoever may write into the run's folder must not have us write elsewhere. So no link below that folder is followed, and
no file is opened that is there already. The folder itself may be a link: the user has named it.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path

from smd_agent.descriptors import open_above
from smd_agent.formats.paths import TEMPORARY_SUFFIX

# A folder that may be searched need not be readable to be gone through.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_CLOEXEC", 0)
# Nobody waits for a pipe that stands in the place of a file.
_OLD_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

_PIECE_BYTES = 1 << 20


class NewFile:
    """A file that is being written; folders that are missing are made.

    Args:
        root: the run's folder. It must be there: where it has gone, a new one is no place for the rest of a step.
        name: of the file, below the run's folder.

    Attributes:
        descriptor: of the open file, to write to.

    Raises:
        OSError: it cannot be made, or one of its folders is a link.
    """

    def __init__(self, root: Path, name: str) -> None:
        *folders, self._name = name.split("/")
        self._folder = _opened(root, folders)
        # Not from `random`, whose state belongs to the program.
        self._temporary = f"{self._name}.{os.getpid()}.{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"
        try:
            self.descriptor = open_above(self._temporary, _NEW_FILE, 0o666, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def begin_as_before(self, size: int, progress: Callable[[], None]) -> None:
        """Copy what is there under the file's name; to be called before anything is written.

        Args:
            size: its size in bytes.
            progress: called with every piece.

        Raises:
            OSError: it cannot be read or copied, is no file, or has another size.
        """
        old = open_above(self._name, _OLD_FILE, dir_fd=self._folder)
        try:
            status = os.fstat(old)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size:
                raise OSError(errno.ESTALE, f"{self._name} is not what was written there")
            while piece := os.read(old, _PIECE_BYTES):
                _write_all(self.descriptor, piece)
                progress()
        finally:
            os.close(old)

    def put_in_place(self) -> None:
        """Close the file and give it its name at once: readers see an old file of that name or this one.

        Raises:
            OSError: that cannot be done; the file is removed.
        """
        try:
            self._close_file()
            os.replace(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            self.remove()
            raise
        os.close(self._folder)

    def remove(self) -> None:
        """Leave no trace of the file."""
        try:
            self._close_file()
        finally:
            try:
                os.unlink(self._temporary, dir_fd=self._folder)
            except FileNotFoundError:
                pass
            finally:
                os.close(self._folder)

    def _close_file(self) -> None:
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)


class GrowingFile:
    """A file that others read while it grows: what is appended is there at once and whole, or is not there.

    Args:
        root: the folder that the user has named, which must be there.
        folder: below that; made where it is missing.
        name: of the file; where one is there already, it gets a number.
        ending: of the name, behind the number.

    Attributes:
        is_whole: whether all that was begun to be appended is there; if not, nothing more should be.

    Raises:
        OSError: it cannot be made, or one of its folders is a link.
    """

    def __init__(self, root: Path, folder: str, name: str, ending: str) -> None:
        opened = _opened(root, folder.split("/"))
        try:
            self._descriptor = _new_numbered(opened, name, ending)
        finally:
            os.close(opened)
        self.is_whole = True
        self._size = 0

    @property
    def is_there(self) -> bool:
        """True if the file has not been removed."""
        return os.fstat(self._descriptor).st_nlink > 0

    def append(self, content: bytes) -> None:
        """Put something at the end.

        Raises:
            OSError: it could not be written, and the file is as it was, if it ``is_whole``.
        """
        try:
            _write_all(self._descriptor, content)
        except BaseException:
            self.is_whole = False
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            self.is_whole = True
            raise
        self._size += len(content)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def create_file(root: Path, name: str) -> int:
    """The descriptor of a new file of a run, to write to; folders that are missing are made.

    Args:
        root: the run's folder, which must be there.
        name: of the file, below the run's folder.

    Raises:
        OSError: it cannot be made, it is there already, or one of its folders is a link.
    """
    *folders, last = name.split("/")
    folder = _opened(root, folders)
    try:
        return open_above(last, _NEW_FILE, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def replace_file(root: Path, name: str, *content: bytes | memoryview) -> None:
    """Put a whole file of a run in place at once: readers see the old one or the new one, never a part.

    Args:
        root: the run's folder.
        name: of the file, below the run's folder.
        content: of the file, in pieces.

    Raises:
        OSError: it cannot be written, or one of its folders is a link.
    """
    file = NewFile(root, name)
    try:
        for piece in content:
            _write_all(file.descriptor, piece)
    except BaseException:
        file.remove()
        raise
    file.put_in_place()


def _write_all(descriptor: int, content: bytes | memoryview) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def remove_file(root: Path, name: str, until: float | None = None) -> None:
    """Remove a file of a run, if it is there.

    Args:
        root: the run's folder.
        name: of the file, below the run's folder.
        until: leave one that was changed after this moment, in seconds since the epoch.

    Raises:
        OSError: it cannot be removed, or one of its folders is a link.
    """
    *folders, last = name.split("/")
    try:
        folder = _opened(root, folders, make=False)
    except FileNotFoundError:
        return
    try:
        if until is None or os.stat(last, dir_fd=folder, follow_symlinks=False).st_mtime <= until:
            os.unlink(last, dir_fd=folder)
    except FileNotFoundError:
        pass
    finally:
        os.close(folder)


def names_in(root: Path, folder: str = "") -> list[str]:
    """The names in a folder of a run, without order; none if it is a link, or cannot be read.

    Args:
        root: the run's folder.
        folder: below the run's folder; empty for that itself.
    """
    try:
        opened = _opened(root, folder.split("/") if folder else [], make=False)
    except OSError:
        return []
    try:
        # One that may only be searched cannot be listed.
        listed = open_above(".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), dir_fd=opened)
    except OSError:
        return []
    finally:
        os.close(opened)
    try:
        return os.listdir(listed)
    finally:
        os.close(listed)


def _new_numbered(folder: int, name: str, ending: str) -> int:
    numbers = itertools.count(2)
    numbered = name
    while os.access(f"{numbered}{ending}", os.F_OK, dir_fd=folder, follow_symlinks=False):
        numbered = f"{name}_{next(numbers)}"
    return open_above(f"{numbered}{ending}", _NEW_FILE, 0o666, dir_fd=folder)


def _opened(root: Path, names: list[str], make: bool = True) -> int:
    """Return a descriptor of a folder below the run's, which is made where it is missing; the run's is not."""
    folder = open_above(root, _FOLDER)
    path = root
    for name in names:
        path /= name
        try:
            inner = _inner(folder, name, make)
        except OSError as error:
            if path.is_symlink():
                raise OSError(errno.ELOOP, f"{path} is a link, which is not followed") from error
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder


def _inner(folder: int, name: str, make: bool) -> int:
    try:
        return open_above(name, _FOLDER | _NO_LINK, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        try:
            os.mkdir(name, dir_fd=folder)
        except FileExistsError:
            # Another worker was faster.
            pass
        return open_above(name, _FOLDER | _NO_LINK, dir_fd=folder)
