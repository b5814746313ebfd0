"""The index files of a run's folder: which have appeared or changed, what they say, and which cannot be read."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smd_agent.errors import IndexReaderException
from smd_agent.formats import paths
from smd_agent.formats.index import Index, IndexParser
from smd_agent.printable import printable
from smd_agent.regular_file import read_text
from smd_agent.storage.folders import change_time, names_in
from smd_agent.storage.index_cache import IndexCache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smd_agent.formats.index_cache import Signature

logger = logging.getLogger("smd_agent")

# Two changes of a folder within a clock tick may leave the same change time, so one that has just changed is
# listed again. Seconds; the coarsest file systems count in steps of two.
_SETTLED_AFTER = 3.0


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
    """Whether a file is there and not as it was."""
    with suppress(OSError):
        return _signature(path) != signature
    return False
