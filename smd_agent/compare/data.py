"""How the inputs of two runs differ: workers have each other's, the order is another one, or the data is."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from smd_agent.compare.flow import Kind
from smd_agent.compare.reading import Side
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smd_agent.analysis.trial import Trial
    from smd_agent.compare.runs import StepDifferences

# Of each run; what is looked for are batches that come again.
_MOST_STEPS = 2000


class Data(enum.Enum):
    """How inputs differ: `SWAPPED` between workers, the `SAME` batches in another order, `OTHER` ones, or not known."""

    SWAPPED = "swapped between workers"
    SAME = "the same batches in another order"
    OTHER = "other batches"
    UNKNOWN = "not known"


def data_of(parted: StepDifferences, here: Trial, there: Trial) -> Data:
    """Tell how the inputs of two runs differ that part in them; only whole values, such as digests, tell it."""
    tensor = next((one.tensor for one in parted.found if one.tensor.kind is Kind.INPUT), None)
    if tensor is None:
        return Data.UNKNOWN
    sides = parted.step.sides
    mine = {worker: _key(pair[0], tensor.here) for worker, pair in sides.items()}
    its = {worker: _key(pair[1], tensor.there) for worker, pair in sides.items()}
    if None in (*mine.values(), *its.values()):
        return Data.UNKNOWN
    if len(sides) > 1 and sorted(map(str, mine.values())) == sorted(map(str, its.values())):
        return Data.SWAPPED
    batches, others = set(_keys(here, tensor.here)), set(_keys(there, tensor.there))
    # Where the same ones come in another order, a run that saves some of its steps has some of them.
    later = {key for key in mine.values() if key in others} | {key for key in its.values() if key in batches}
    return Data.SAME if later or 2 * len(batches & others) > min(len(batches), len(others)) else Data.OTHER


def _keys(trial: Trial, name: str) -> Iterator[object]:
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)[:_MOST_STEPS]:
        for file in trial.step_table.files(step).values():
            key = _key(Side(trial, file), name)
            if key is not None:
                yield key


def _key(side: Side, name: str) -> object:
    """Return what is the same for the same inputs alone; None where the step has no whole value."""
    if not side.is_whole(name):
        return None
    try:
        value = side.value(name)
    except SMDebugError:
        return None
    return value.shape, value.tobytes()
