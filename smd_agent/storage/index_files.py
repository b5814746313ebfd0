"""The index files of a run's folder: those that have appeared or changed, what they say, and the cache of that.

The cache is a file beside a large run, by which the run is opened quickly the next time. It is never needed: what it
does not hold, or holds of an index file that has changed since, is read from the index files. It is written by who
reads, once the run goes on no more, where that is allowed; and put in place whole.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smd_agent.errors import IndexReaderException
from smd_agent.formats import paths
from smd_agent.formats.index import Index, IndexParser
from smd_agent.formats.index_cache import CachedFile, Signature, UnusableCache, decode, encode
from smd_agent.printable import printable
from smd_agent.regular_file import open_to_read, read_bytes, read_text
from smd_agent.storage.atomic_file import replace_file
from smd_agent.storage.claim import Claim, is_gone

logger = logging.getLogger("smd_agent")

# Two changes of a folder or a file within a clock tick may leave the same change time, so one that has just changed is
# looked at again. Seconds; the coarsest file systems count in steps of two.
_SETTLED_AFTER = 3.0
# So many index files must have been read one by one for a cache to be written.
WORTHWHILE = 1000
LARGEST_BYTES = 1 << 27
# A run of another machine that has written nothing for so long goes on no more. Seconds.
_OLD_SECONDS = 3600.0
# The disk must have room for so many of the file.
_ROOM = 10


@dataclass(frozen=True)
class StepIndex:
    """One index file that has been read: whose it is, and what it says."""

    step: int
    worker: str
    index: Index


class IndexFiles:
    """The index files of one run.

    Args:
        root: the run's folder; it need not exist yet.
        first: of no step before this global step.
        end: of no step from this global step on.

    Attributes:
        problems: what is wrong with each index file that cannot be read, by its path below the run's root.
    """

    def __init__(self, root: Path, first: int, end: int | None) -> None:
        self.problems: dict[str, str] = {}
        self._root = root
        self._first = first
        self._end = end
        self._parser = IndexParser()
        self._cache = IndexCache(root, self._parser)
        self._settled: dict[str, int] = {}
        # By folder: the names of those that have been read, or are none of ours; and the last one of each worker.
        self._known: dict[str, set[str]] = {}
        self._last: dict[str, dict[str, tuple[str, Signature]]] = {}
        self._bad: dict[str, Signature] = {}

    def workers(self) -> set[str]:
        """Return the workers that have an index file in the first folder of them."""
        index_root = self._root / paths.INDEX_FOLDER
        for folder in sorted(names_in(index_root)):
            names = (name for name in names_in(index_root / folder) if name.endswith(".json"))
            found = {parsed[1] for parsed in map(paths.parse_step_file, names) if parsed is not None}
            if found:
                return found
        return set()

    def new(self) -> Iterator[StepIndex]:
        """Read the files that have appeared since the last call, in the order of steps and workers.

        The last one of each worker is read again when it has changed: its step was open, and has got more. One that
        cannot be read is noted in ``problems`` and named in one warning; it is tried again when it changes.
        """
        index_root = self._root / paths.INDEX_FOLDER
        for folder in sorted(names_in(index_root)):
            if folder.isdecimal() and self._in_range(folder):
                yield from self._new_in(index_root / folder)
        if not self._first and self._end is None:
            self._cache.save()

    def steps_of(self, worker: str) -> list[int]:
        """Return the steps of which there is an index file of a worker, by the files' names alone."""
        index_root = self._root / paths.INDEX_FOLDER
        names = (name for folder in names_in(index_root) for name in names_in(index_root / folder))
        found = (paths.parse_step_file(name) for name in names if name.endswith(".json"))
        return sorted(step[0] for step in found if step is not None and step[1] == worker)

    def index_of(self, step: int, worker: str) -> StepIndex | None:
        """Read one file; None where it cannot be read."""
        path = self._root / paths.index_path(step, worker)
        read = self._read(path.parent, path.name)
        return None if read is None else StepIndex(step, worker, read[0])

    def _in_range(self, folder: str) -> bool:
        past_end = self._end is not None and folder > paths.index_folder(self._end)
        return folder >= paths.index_folder(self._first) and not past_end

    def _new_in(self, folder: Path) -> Iterator[StepIndex]:
        changed = change_time(folder)
        bad = any(name.startswith(f"{folder.name}/") for name in self._bad)
        if changed is None or (self._settled.get(folder.name) == changed and not bad):
            return
        known = self._known.setdefault(folder.name, set())
        last = self._last.setdefault(folder.name, {})
        known -= {name for name, signature in last.values() if _has_changed(folder / name, signature)}
        for name in sorted(names_in(folder) - known):
            parsed = paths.parse_step_file(name) if name.endswith(".json") else None
            if parsed is None or not self._wanted(parsed[0]):
                known.add(name)
                continue
            read = self._read(folder, name)
            if read is not None:
                known.add(name)
                last[parsed[1]] = name, read[1]
                yield StepIndex(*parsed, read[0])
        # Only now: a caller that stops half-way gets the rest next time.
        if time.time() - changed / 1e9 > _SETTLED_AFTER:
            self._settled[folder.name] = changed

    def _wanted(self, step: int) -> bool:
        return step >= self._first and (self._end is None or step < self._end)

    def _read(self, folder: Path, name: str) -> tuple[Index, Signature] | None:
        key, path = f"{folder.name}/{name}", folder / name
        relative = f"{paths.INDEX_FOLDER}/{key}"
        signature = (-1, -1)
        try:
            signature = _signature(path)
            if self._bad.get(key) == signature:
                return None
            index = self._cache.get(key, signature)
            if index is None:
                index = self._parser.parse(read_text(path))
                self._cache.add(key, signature, index)
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"Invalid File Found: {printable(str(path))} ({error.strerror})"
        except IndexReaderException as error:
            problem = error.message
        except MemoryError:
            problem = "it is too large for the memory that there is"
        else:
            self._bad.pop(key, None)
            self.problems.pop(relative, None)
            return index, signature
        self._bad[key] = signature
        if relative not in self.problems:
            logger.warning("smd_agent: the step of %s is left out: %s", printable(str(path)), problem)
        self.problems[relative] = problem
        return None


def _signature(path: Path) -> Signature:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _has_changed(path: Path, signature: Signature) -> bool:
    """True if a file is there and not as it was."""
    with suppress(OSError):
        return _signature(path) != signature
    return False


def names_in(folder: Path) -> set[str]:
    """Return the names of what is in a folder; none when it is not there, or cannot be read."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def change_time(path: Path) -> int | None:
    """Return when a file or folder was changed, in nanoseconds since the epoch; None when it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


class IndexCache:
    """The cache of one run's index files.

    Args:
        root: the run's folder.
        parser: of its index files.
    """

    def __init__(self, root: Path, parser: IndexParser) -> None:
        self._root = root
        self._parser = parser
        self._read: dict[str, CachedFile] | None = None
        self._current: list[CachedFile] = []
        self._new = 0

    def get(self, path: str, signature: Signature) -> Index | None:
        """Return what an index file says; None if that is not known.

        Args:
            path: of the file, below the index folder.
            signature: of the file as it is now.
        """
        if self._read is None:
            self._read = self._load()
        # Each is asked for once, and the rest need not be kept.
        file = self._read.pop(path, None)
        if file is None or file.signature != signature:
            return None
        self._current.append(file)
        return file.index

    def add(self, path: str, signature: Signature, index: Index) -> None:
        """Take in an index file that had to be read."""
        if time.time() - signature[0] / 1e9 > _SETTLED_AFTER:
            self._current.append(CachedFile(path, signature, index))
            self._new += 1

    def save(self) -> None:
        """Write the file if that saves much the next time, and the run goes on no more."""
        if self._new < WORTHWHILE or not self._goes_on_no_more():
            return
        self._new = 0
        # A folder that cannot be written, or has no room, is no failure.
        with suppress(OSError):
            content = encode(self._current)
            if len(content) <= LARGEST_BYTES and shutil.disk_usage(self._root).free > _ROOM * len(content):
                replace_file(self._root, paths.INDEX_CACHE, content)

    def _load(self) -> dict[str, CachedFile]:
        try:
            with open_to_read(self._root / paths.INDEX_CACHE) as file:
                content = read_bytes(file, LARGEST_BYTES + 1)
            return decode(content, self._parser) if len(content) <= LARGEST_BYTES else {}
        except (OSError, UnusableCache, MemoryError):
            return {}

    def _goes_on_no_more(self) -> bool:
        if (self._root / paths.END_MARKER).exists():
            return True
        owner = Claim(self._root).owner()
        last = max(file.signature[0] for file in self._current)
        return (owner is not None and is_gone(owner)) or time.time() - last / 1e9 > _OLD_SECONDS
