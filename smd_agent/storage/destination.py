"""The destination of a run: a folder alone, a folder and a store, or a store alone.

Every run is written into a folder. One that goes to a store alone has a folder of its own for the way, which goes when
the program ends and the store has everything.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from smd_agent import guard
from smd_agent.formats.addresses import is_address, last_part, plain
from smd_agent.formats.paths import claim_path
from smd_agent.formats.training_state import TrainingState
from smd_agent.storage.folder_choice import Continuation, absolute, is_folder_of, refusal, refuse_finished_run
from smd_agent.storage.staging import is_staging_folder, staging_folder
from smd_agent.storage.stores import StoreFailure
from smd_agent.storage.uploads import Uploads

# Where runs lie for which nobody has named a folder.
RUNS_FOLDER = "smd_runs"


@dataclass
class Destination:
    """The destination of a run.

    Attributes:
        folder: of the run.
        uploads: bring it into a store, if it goes into one.
    """

    folder: str
    uploads: Uploads = field(default_factory=Uploads)

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
        uploads = Uploads(address, patience, on_the_way)
        try:
            uploads.open()
        except StoreFailure as failure:
            folder = str(_instead_of(address)) if on_the_way else plain(out_dir)
            verb = "goes into" if on_the_way else "stays in"
            guard.say_once(("store", address), f"{address} is not used ({failure.strerror}): the run {verb} {folder}")
            return cls(folder)
        return cls(str(staging_folder(address)) if on_the_way else plain(out_dir), uploads)

    def go_on_with(self, last: TrainingState | None) -> Continuation | None:
        """Prepare for a training that may be started again, and go on with the run of an earlier start.

        Returns:
            What this run goes on with in its folder, which may become another one; None if there is nothing.

        Args:
            last: where the training stood last; None if it begins.
        """
        store = self.uploads.go_on_with(last)
        if last is None or last.folder is None:
            return None
        root = Path(last.folder)
        if self.uploads.on_the_way:
            # What one process has left on its way; the folders of several are known to nobody but them.
            if store is None or store.claim != claim_path() or not is_staging_folder(root, Path(self.folder).name):
                return None
            self.folder = str(root)
        return Continuation(root, last.seen) if is_folder_of(root, absolute(self.folder)) else None

    def refuse_finished_run(self) -> None:
        """Raise if there is a finished run.

        Raises:
            SMDebugRuntimeError: there is.
        """
        refuse_finished_run(self.folder)
        if self.uploads.finished_before:
            raise refusal(self.uploads.finished_before)


def _instead_of(address: str) -> Path:
    here = Path.cwd()
    return (here if os.access(here, os.W_OK) else Path(tempfile.gettempdir())) / RUNS_FOLDER / last_part(address)
