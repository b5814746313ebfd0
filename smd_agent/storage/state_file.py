"""The file of training states in the folder of a program's checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from smd_agent.formats.training_state import FILE_NAME, TrainingState, parse_states, states_text
from smd_agent.regular_file import read_text
from smd_agent.stalled_disk import in_time
from smd_agent.storage.whole_file import replace_file

_LARGEST_BYTES = 1 << 22
# So many are kept.
_STATES = 1000
# What a program writes beside its checkpoints, and again and again; and what SageMaker's uploader leaves there.
_LOGS = (".log", ".txt", ".csv", ".tsv", ".jsonl", ".out", ".err", ".lock")
_NO_CHECKPOINTS = (FILE_NAME, "sagemaker-uploaded", "tfevents")


def is_checkpoint(name: str) -> bool:
    """Whether a file of this name may be a checkpoint, or a part of one."""
    return not name.endswith(_LOGS) and not any(part in name for part in _NO_CHECKPOINTS)


def path_of(folder: Path) -> Path:
    """The file in a folder of checkpoints."""
    return folder / FILE_NAME


def read_states(folder: Path) -> list[TrainingState]:
    """The states of earlier starts; none where there is no file, or no checkpoint beside it.

    Raises:
        OSError: the file cannot be read, or not in time.
        ValueError: it is not such a file.
    """
    return in_time(partial(_read_states, folder))


def write_states(folder: Path, states: Sequence[TrainingState]) -> None:
    """Put the file in place at once: whoever reads it finds the old one or the new one.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(folder, FILE_NAME, states_text(states[-_STATES:]).encode())


def _read_states(folder: Path) -> list[TrainingState]:
    try:
        text = read_text(path_of(folder), largest=_LARGEST_BYTES)
    except FileNotFoundError:
        return []
    # Without a checkpoint there is nothing that could go on.
    return parse_states(text) if any(map(is_checkpoint, os.listdir(folder))) else []
