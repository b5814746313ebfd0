"""Waiting for what is written, and making ready what it is written to."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

WAIT_LIMIT = 60.0
TOUCHED_BYTES = 400 * 2**20
SETTLING = 0.05
ZEROS = bytes(2**20)


def wait_for(path: Path) -> None:
    """Wait until the file exists.

    Raises:
        TimeoutError: it does not appear within a minute.
    """
    limit = time.perf_counter() + WAIT_LIMIT
    while not path.exists():
        if time.perf_counter() > limit:
            raise TimeoutError(f"{path} did not appear")
        time.sleep(0.0002)


def touch_page_cache(folder: Path) -> None:
    """Write and remove a file, so that the pages that are written next are ones the machine has touched before.

    A virtual machine gets its memory from its host page by page at the first touch, which takes ten times as long as a
    write to the page; without this the comparison is about who meets more new pages.
    """
    path = folder / "touch.bin"
    with path.open("wb", buffering=0) as file:
        for _ in range(TOUCHED_BYTES // len(ZEROS)):
            file.write(ZEROS)
    path.unlink()


def forget_steps(run: Path) -> None:
    """Remove the values that were saved, once the last ones have had the time to get there."""
    if run.exists():
        time.sleep(SETTLING)
        shutil.rmtree(run / "events", ignore_errors=True)
