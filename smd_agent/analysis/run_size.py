"""The size of a run on the disk."""

from __future__ import annotations

import os

from smd_agent.analysis.trial import Trial
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.addresses import is_address


def bytes_of(trial: Trial) -> int:
    """Return how many bytes the files of a run have; links are not followed. Of one in a store, the tensors have."""
    if is_address(trial.path):
        steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
        files = (file for step in steps for file in trial.step_table.files(step).values())
        return sum(sum(file.index.payload.lengths) for file in files)
    return sum(_size(os.path.join(folder, name)) for folder, _, names in os.walk(trial.root) for name in names)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
