"""Waiting for the collections files with which a run becomes readable, and keeping up with them."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.errors import MissingCollectionFiles, SMDebugError, SMDebugRuntimeError
from smd_agent.formats import paths
from smd_agent.printable import printable
from smd_agent.regular_file import read_text

if TYPE_CHECKING:
    from smd_agent.storage.run_reader import RunReader

logger = logging.getLogger("smd_agent")

POLL_SECONDS = 2.0

# What the tensors of a collection are called, whichever framework saved them.
_BY_NAME = {
    CollectionKeys.WEIGHTS: ("^(?!gradient|scalar/).*(weight|kernel)",),
    CollectionKeys.BIASES: ("^(?!gradient|scalar/).*bias",),
    CollectionKeys.GRADIENTS: ("^gradient",),
    CollectionKeys.LOSSES: ("[Ll]oss_(?!input).*output", "^loss$"),
}


class CollectionsFiles:
    """The collections of a run: defined by the first worker's file, while the others only tell who writes.

    ``manager`` holds the collections, ``workers`` the names of the workers in order.
    """

    def __init__(self, reader: RunReader) -> None:
        self.manager = CollectionManager()
        self.workers: list[str] = []
        self._reader = reader
        self._signature: tuple[str, int, int] | None = None

    @property
    def num_workers(self) -> int:
        """Number of workers that the run says it has."""
        return self.manager.get_num_workers()

    def wait(self, timeout: float) -> None:
        """Wait until there are as many files as the first of them announces.

        When time is up, a run with steps is opened with what is there, and a warning says what is missing. One that has
        ended and has none at all is opened at once.

        Raises:
            MissingCollectionFiles: the run has ended, so those that are missing will not come.
            SMDebugRuntimeError: time is up and the folder has neither a collections file nor a step.
        """
        deadline = time.monotonic() + timeout
        while True:
            # In this order: files may come between the two looks, the end mark may not.
            ended = self._reader.ended() is not None
            self.refresh()
            if self.workers and len(self.workers) >= self.num_workers:
                return
            if ended and not self.workers and self._reader.workers():
                break
            if ended:
                raise MissingCollectionFiles
            if time.monotonic() >= deadline:
                break
            time.sleep(min(POLL_SECONDS, max(deadline - time.monotonic(), 0.0)))
        self._accept_what_is_there(timeout)

    def _accept_what_is_there(self, timeout: float) -> None:
        root = self._reader.shown
        folder = f"{root}/{paths.COLLECTIONS_FOLDER}"
        waited = f" after {timeout:g} s" if timeout else ""
        if self.workers:
            have = printable(", ".join(self.workers))
            what = f"{self.num_workers} workers write to it, and only {have} left a collections file in {folder}"
        elif (self._reader.root / paths.INDEX_FOLDER).is_dir():
            self._guess()
            what = f"it has no collections file in {folder}, so its collections are guessed by the tensors' names"
        elif not self._reader.is_there():
            raise SMDebugRuntimeError(f"there is no run at {root}: no such folder{waited}")
        else:
            raise SMDebugRuntimeError(f"{root} is not a run: it has no collections file in {folder}{waited}")
        logger.warning("smd_agent: %s is incomplete%s: %s", root, waited, what)

    def _guess(self) -> None:
        self.manager = CollectionManager(create_default=True, built_in=_BY_NAME)
        self.manager.set_num_workers(max(len(self._reader.workers()), 1))

    def refresh(self) -> None:
        """Look for new files, and read the first again when it has changed."""
        files = self._reader.collections_files()
        self.workers = list(files)
        for path in files.values():
            signature = _signature(path)
            if signature is None:
                continue
            if signature != self._signature:
                self._take(path)
                self._signature = signature
            return

    def _take(self, path: Path) -> None:
        shown = printable(str(path))
        try:
            found = CollectionManager.load_from_string(read_text(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise SMDebugRuntimeError(f"{shown} cannot be read: {error.strerror}") from error
        except (SMDebugError, MemoryError) as error:
            reason = str(error) or "it is too large for the memory that there is"
            raise SMDebugRuntimeError(f"{shown} cannot be understood: {reason}") from error
        if self._signature is None:
            self.manager = found
            return
        # A running job learns tensor names. What the reading program added to its collections must stay.
        self.manager.set_num_workers(found.get_num_workers())
        self.manager.set_cannot_save(found.cannot_save)
        self.manager.set_left_out(found.left_out)
        for name, collection in found.collections.items():
            known = self.manager.collections.setdefault(name, collection)
            known.tensor_names.update(collection.tensor_names)


def _signature(path: Path) -> tuple[str, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (path.name, status.st_mtime_ns, status.st_size)
