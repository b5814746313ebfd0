"""The courses of many tensors of a run, from as many of its steps as can be read in a few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smd_agent.analysis.course import Course
from smd_agent.analysis.statistics import measure
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smd_agent.analysis.ports import TensorSource
    from smd_agent.core.collection import Collection
    from smd_agent.storage.index_files import StepIndex

# To look at a tensor takes as long as to read so many stored numbers, to read a small one so many more.
_TENSOR_AT_ALL = 5
_TENSOR_AS_NUMBERS = 20
# So many steps are looked at, whatever it takes.
_FEWEST = 5
_EVALUATIONS = (ModeKeys.EVAL, ModeKeys.PREDICT)
# What need not change, and what may have values that are not there.
_MAY_STAY = (
    CollectionKeys.INPUTS,
    CollectionKeys.LABELS,
    CollectionKeys.FEATURE_IMPORTANCE,
    CollectionKeys.AVERAGE_SHAP,
    CollectionKeys.FULL_SHAP,
)
_NOT_JUDGED = (
    CollectionKeys.TREES,
    CollectionKeys.HYPERPARAMETERS,
    CollectionKeys.OPTIMIZER,
    CollectionKeys.INPUT_DIGESTS,
    CollectionKeys.PARAMETERS,
    CollectionKeys.USAGE,
    CollectionKeys.DATA_FACTS,
)


@dataclass(frozen=True)
class Effort:
    """How much is read: stored numbers, and bytes; larger tensors than ``largest`` bytes are not read."""

    numbers: int
    bytes: int
    largest: int | None = None


@dataclass(frozen=True)
class Overview:
    """The courses of some tensors by name and mode, and of how many steps which were looked at.

    ``problems`` says what could not be read, each sentence once; ``unread`` are tensors that were too large.
    """

    courses: list[Course]
    steps: int
    looked_at: int
    problems: list[str]
    unread: set[str]


def look_at(
    source: TensorSource,
    names: Sequence[str],
    collections: Mapping[str, Collection],
    mode: ModeKeys,
    steps: Sequence[int],
    effort: Effort,
    worker: str | None = None,
) -> Overview:
    """Read how tensors go over the steps.

    Args:
        source: the trial.
        names: of the tensors.
        collections: of the run.
        mode: how the steps are counted.
        steps: those that may be looked at, in order.
        effort: where they are more than this allows, some are left out, evenly; never the first and the last.
        worker: only what this worker saved.
    """
    kinds = [_members(collections, one) for one in ((CollectionKeys.LOSSES,), _MAY_STAY, _NOT_JUDGED)]
    some = _some(steps, _affordable(source, names, mode, steps, effort))
    courses: dict[tuple[str, ModeKeys], Course] = {}
    problems: dict[str, None] = {}
    unread: set[str] = set()
    for step in some:
        for file in _files(source, step, mode, worker):
            for measured in measure(source, file, names, largest=effort.largest):
                if measured.problem is not None:
                    problems[str(measured.problem)] = None
                name, key = measured.name, (measured.name, file.index.mode)
                if not measured.numbers:
                    location = file.index.payload.location(name)
                    unread |= (
                        {name} if location is not None and location[1] > (effort.largest or location[1]) else set()
                    )
                    continue
                if key not in courses:
                    is_loss, may_stay, not_judged = (any(one.matches(name) for one in kind) for kind in kinds)
                    # From one step of an evaluation to the next, nothing of the model changes.
                    may_stay |= key[1] in _EVALUATIONS and not is_loss
                    courses[key] = Course(*key, is_loss, may_stay, not_judged)
                courses[key].add(step, file.worker, measured)
    return Overview(list(courses.values()), len(steps), len(some), list(problems), unread)


def _members(collections: Mapping[str, Collection], names: Sequence[str]) -> list[Collection]:
    return [collections[name] for name in names if name in collections]


def _files(source: TensorSource, step: int, mode: ModeKeys, worker: str | None) -> Iterator[StepIndex]:
    for name, file in sorted(source.step_table.files(step, mode).items()):
        if worker in (None, name):
            yield file


def _affordable(
    source: TensorSource, names: Sequence[str], mode: ModeKeys, steps: Sequence[int], effort: Effort
) -> int:
    """Return how many of the steps can be read, by what the last one holds."""
    numbers = size = 1
    for file in _files(source, steps[-1], mode, None) if steps else ():
        contents, payload = source.contents(file), file.index.payload
        own = [name for name in names if name in contents.names]
        numbers += sum(_TENSOR_AT_ALL + len(contents.reductions.get(name, ())) for name in own)
        lengths = [location[1] for name in names if (location := payload.location(name)) is not None]
        read = [length for length in lengths if effort.largest is None or length <= effort.largest]
        numbers, size = numbers + _TENSOR_AS_NUMBERS * len(read), size + sum(read)
    return min(effort.numbers // numbers, effort.bytes // size)


def _some(steps: Sequence[int], most: int) -> list[int]:
    if len(steps) <= max(most, _FEWEST):
        return list(steps)
    most = max(most, _FEWEST)
    return [steps[number * (len(steps) - 1) // (most - 1)] for number in range(most)]
