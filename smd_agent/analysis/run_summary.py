"""A summary of what a run has saved: its size on the disk, its state, its files that are alike."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.addresses import is_address
from smd_agent.formats.paths import index_path
from smd_agent.storage.claim import describe_state

if TYPE_CHECKING:
    from smd_agent.analysis.steps import Contents
    from smd_agent.analysis.trial import Trial
    from smd_agent.storage.index_files import StepIndex


@dataclass
class Alike:
    """Files with the same tensors in the same order; ``sizes`` are the records' bytes, added up over the files."""

    first: StepIndex
    sizes: npt.NDArray[np.int64]
    steps: set[int] = field(default_factory=set)
    modes: set[ModeKeys] = field(default_factory=set)

    def size_by_name(self) -> dict[str, int]:
        """Return the bytes of each record, by the name that it is stored under."""
        return dict(zip(self.first.index.payload.tensors.names, self.sizes.tolist(), strict=True))


def files_alike(trial: Trial) -> dict[Contents, Alike]:
    """Return the files of a run by their contents: thousands of steps have the same hundreds of tensors."""
    found: dict[Contents, Alike] = {}
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        for file in trial.step_table.files(step).values():
            lengths = np.array(file.index.payload.lengths, np.int64)
            alike = found.setdefault(trial.contents(file), Alike(file, np.zeros_like(lengths)))
            alike.sizes += lengths
            alike.steps.add(step)
            alike.modes.add(file.index.mode)
    return found


def bytes_of(trial: Trial) -> int:
    """Return how many bytes the files of a run have; links are not followed. Of one in a store, the tensors have."""
    if is_address(trial.path):
        return sum(int(alike.sizes.sum()) for alike in files_alike(trial).values())
    return sum(_size(os.path.join(folder, name)) for folder, _, names in os.walk(trial.root) for name in names)


def state_of(trial: Trial) -> str:
    """Return what has become of a run, in a few words; its last file tells when it was written."""
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    last = index_path(steps[-1], next(iter(trial.step_table.files(steps[-1])))) if steps else None
    return describe_state(trial.root, None if last is None else trial.root / last)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
