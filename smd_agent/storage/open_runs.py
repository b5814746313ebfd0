"""Runs that this process writes, for who reads one of them in the same process, as in a notebook."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from typing import Protocol


class OpenRun(Protocol):
    """A run that is being written."""

    @property
    def local_dir(self) -> str | None:
        """The folder on this machine that has all of it; None where there is none any more."""

    def publish_ended(self) -> None:
        """Have readers find all steps that have ended."""


_runs: list[weakref.ref[OpenRun]] = []


def add(run: OpenRun) -> None:
    """Take note of a run, as long as something else has it."""
    _runs.append(weakref.ref(run, _runs.remove))


def bring_up_to_date(folder: str | os.PathLike[str]) -> None:
    """Have all steps in a folder that have ended, if this process writes a run there."""
    for reference in [*_runs]:
        run = reference()
        # Whatever is the matter with the writer, what is there can be read.
        with suppress(Exception):
            if run is not None and run.local_dir is not None and _is_same(run.local_dir, folder):
                run.publish_ended()


def _is_same(folder: str, other: str | os.PathLike[str]) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)
