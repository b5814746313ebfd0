"""Where a run is written and where it goes from there: a folder alone, a folder and a store, or a store alone.

Every run is written into a folder. One that goes to a store alone has a folder of its own for the way, which goes when
the program ends and the store has everything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats.addresses import is_address, last_part, plain
from smd_agent.storage.run_folder import refuse_finished_run

if TYPE_CHECKING:
    from smd_agent.storage.uploads import Uploads

# Where runs lie for which nobody has named a folder.
RUNS_FOLDER = "smd_runs"


@dataclass
class Destination:
    """Where a run is written.

    Attributes:
        folder: of the run.
        uploads: brings it into a store; None where it stays.
    """

    folder: str
    uploads: Uploads | None = None

    @classmethod
    def of(cls, out_dir: str, upload_to: str | None, patience: float) -> Destination:
        """Find out where a run can go; where the store that was asked for cannot be used, one line says so.

        Args:
            out_dir: folder of the run, or the address of a store.
            upload_to: address of a store where a run in a folder goes, too; None for nowhere.
            patience: seconds that the end of the run waits at most until the store has everything.
        """
        on_the_way = is_address(out_dir)
        if not on_the_way and upload_to is None:
            return cls(plain(out_dir))
        address = plain(out_dir if upload_to is None else upload_to)
        uploads, failure = _opened(address, patience, on_the_way)
        instead = _instead_of(address) if failure else _on_the_way(address)
        folder = str(instead) if on_the_way else plain(out_dir)
        if failure:
            verb = "goes into" if on_the_way else "stays in"
            guard.say_once(("store", address), f"{address} is not used ({failure}): the run {verb} {folder}")
        return cls(folder, None if failure else uploads)

    def refuse_finished_run(self) -> None:
        """Raise if there is a finished run.

        Raises:
            SMDebugRuntimeError: there is.
        """
        refuse_finished_run(self.folder)
        if self.uploads is not None and self.uploads.finished_before:
            raise SMDebugRuntimeError(
                f"The path:{self.uploads.address} already exists and holds a finished run. "
                "Please provide a directory path that does not already exist."
            )


def make_way(folder: Path) -> None:
    """Make what is around the folder of a run that goes to a store alone, so that nobody else can look into it.

    Raises:
        OSError: that is not possible.
    """
    folder.parent.mkdir(mode=0o700, exist_ok=True)


def clear_way(folder: Path) -> None:
    """Remove a folder that a store has everything of, and what is around it unless there is more in there."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()


def _opened(address: str, patience: float, on_the_way: bool) -> tuple[Uploads, str]:
    """The way into a store, and why it cannot be used; empty if it can."""
    # Not for every program: asyncio takes a while to import.
    from smd_agent.storage.stores import StoreFailure
    from smd_agent.storage.uploads import Uploads

    uploads = Uploads(address, patience, on_the_way)
    try:
        uploads.open()
    except StoreFailure as failure:
        return uploads, str(failure.strerror)
    return uploads, ""


def _on_the_way(address: str) -> Path:
    # Not from `random`, whose state belongs to the program.
    return Path(tempfile.gettempdir(), f"smd_agent-{os.urandom(6).hex()}", last_part(address))


def _instead_of(address: str) -> Path:
    here = Path.cwd()
    return (here if os.access(here, os.W_OK) else Path(tempfile.gettempdir())) / RUNS_FOLDER / last_part(address)
