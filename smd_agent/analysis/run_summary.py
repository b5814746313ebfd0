"""A summary of what a run has saved: its size on the disk, its state, its files that are alike, its trained parameters.

Parameters are trained by what the agent has noted of them in the collection ``parameters``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.formats.addresses import is_address
from smd_agent.formats.paths import index_path
from smd_agent.storage.claim import describe_state

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import TensorSource
    from smd_agent.analysis.steps import Contents
    from smd_agent.analysis.trial import Trial
    from smd_agent.core.collection import Collection
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


TRAINED, FROZEN, FORGOTTEN, NO_GRADIENT = "trained", "frozen", "no optimizer", "no gradient"
"""Trained; not to be trained; to be trained, and in no optimizer; in one, and without a gradient in all that was noted.
"""

# It is noted where it has changed: in every step where models take turns.
_MOST_NOTES = 50
# In the place of an optimizer: one that has not updated in this step.
_NOT_NOW = "another"


def trained_states(source: TensorSource, noted: Collection, names: Iterable[str]) -> dict[str, str]:
    """Return of each parameter whether it is trained, by name; of which that cannot be known is left out.

    Args:
        source: the trial.
        noted: the collection ``parameters``.
        names: of the tensors of the run.
    """
    latest: dict[str, dict[str, object]] = {}
    had_gradient: set[str] = set()
    for name in names:
        for facts in _notes(source, name) if noted.matches(name) else ():
            for parameter, fact in facts.items():
                latest[parameter] = fact
                if fact.get("gradient"):
                    had_gradient.add(parameter)
    states = {parameter: _state(fact, parameter in had_gradient) for parameter, fact in latest.items()}
    return {parameter: state for parameter, state in states.items() if state is not None}


def _state(fact: dict[str, object], had_gradient: bool) -> str | None:
    if not fact.get("requires_grad"):
        return FROZEN
    if fact.get("optimizer") is None:
        return FORGOTTEN
    if had_gradient:
        return TRAINED
    # What another optimizer has may get its gradients in steps that were not saved.
    return None if fact.get("optimizer") == _NOT_NOW else NO_GRADIENT


def _notes(source: TensorSource, name: str) -> Iterator[dict[str, dict[str, object]]]:
    """The notes under a name, the latest last; those that cannot be read are left out."""
    steps = source.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    files = [file for step in steps for _, file in sorted(source.step_table.files(step).items(), reverse=True)]
    for file in [file for file in files if name in source.contents(file).names][-_MOST_NOTES:]:
        try:
            (text,) = source.read(file, name).value.reshape(-1).tolist()
            facts: Any = json.loads(text)
        except (SMDebugError, ValueError, TypeError, RecursionError):
            continue
        if isinstance(facts, dict):
            yield {str(parameter): fact for parameter, fact in facts.items() if isinstance(fact, dict)}
