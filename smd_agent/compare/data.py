"""Differences between the inputs of two runs: workers have each other's, the order is another one, or the data is."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from smd_agent.compare.flow import Kind
from smd_agent.compare.steps import step_pairs
from smd_agent.errors import SMDebugError

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.compare.reading import Side
    from smd_agent.compare.runs import StepDifferences

# What is looked for are batches that come again.
_MOST_STEPS = 2000


class Data(enum.Enum):
    """A way to differ: `SWAPPED` between workers, the `SAME` batches in another order, `OTHER` ones, or not known."""

    SWAPPED = "swapped between workers"
    SAME = "the same batches in another order"
    OTHER = "other batches"
    UNKNOWN = "not known"


def data_of(parted: StepDifferences, here: Trial, there: Trial) -> Data:
    """Tell how the inputs of two runs differ that part in them; only whole values, such as digests, tell it."""
    sides = parted.step.sides
    for tensor in dict.fromkeys(one.tensor for one in parted.found if one.tensor.kind is Kind.INPUT):
        mine = {worker: _key(pair[0], tensor.here) for worker, pair in sides.items()}
        its = {worker: _key(pair[1], tensor.there) for worker, pair in sides.items()}
        if None not in (*mine.values(), *its.values()):
            break
    else:
        return Data.UNKNOWN
    if len(sides) > 1 and sorted(map(str, mine.values())) == sorted(map(str, its.values())):
        return Data.SWAPPED
    batches: tuple[set[object], set[object]] = set(), set()
    for pair in step_pairs(here, there)[:_MOST_STEPS]:
        for one, other in pair.sides.values():
            keys = _key(one, tensor.here), _key(other, tensor.there)
            if keys[0] != keys[1]:
                for known, key in zip(batches, keys, strict=True):
                    known.add(key)
    common = batches[0] & batches[1] - {None}
    return Data.SAME if 2 * len(common) > min(map(len, batches)) else Data.OTHER


def _key(side: Side, name: str) -> object:
    """Return what is the same for the same inputs alone; None where the step has no whole value."""
    if not side.is_whole(name):
        return None
    try:
        value = side.value(name)
    except SMDebugError:
        return None
    return value.shape, value.tobytes()
