"""Which reader a run has: of a folder, or of a store."""

from __future__ import annotations

from pathlib import Path

from smd_agent.formats.addresses import is_address
from smd_agent.storage.reader import RunReader


def reader_of(path: str, first: int | None, end: int | None) -> RunReader:
    """Make the reader of a run.

    Args:
        path: the run's folder, or its address.
        first: read no step before this global step.
        end: read no step from this global step on.

    Raises:
        SMDebugRuntimeError: what knows such addresses is not installed.
    """
    if not is_address(path):
        return RunReader(Path(path), first, end)
    # Not for every program: asyncio takes a while to import.
    from smd_agent.storage.store_reader import StoreReader

    return StoreReader(path, first, end)
