"""The run that a command reads."""

from __future__ import annotations

from pathlib import Path

from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.errors import MissingCollectionFiles, SMDebugError
from smd_agent.formats import paths
from smd_agent.formats.addresses import is_address, plain
from smd_agent.storage.store_reader import is_run


def open_run(path: str) -> Trial:
    """Open a run without waiting for anything.

    Raises:
        CommandError: there is no readable run.
    """
    try:
        trial = create_trial(path, timeout=0)
        trial.maybe_refresh()
    except MissingCollectionFiles as error:
        raise CommandError(f"{path} cannot be opened: {error}", USAGE_ERROR) from error
    except SMDebugError as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    trial.take_as_it_is()
    return trial


def is_awaited(path: str) -> bool:
    """True where a run may yet come: there is no folder, or one that is empty or without collections and steps."""
    if is_address(path):
        try:
            return not is_run(plain(path))
        except SMDebugError as error:
            raise CommandError(str(error), USAGE_ERROR) from error
    root = Path(path.strip()).expanduser()
    if root.exists() and not root.is_dir():
        return False
    return not any((root / name).is_dir() for name in (paths.COLLECTIONS_FOLDER, paths.INDEX_FOLDER))
