"""The steps that two runs have, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from smd_agent.compare.reading import Side
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial


class StepPair(NamedTuple):
    """A step that both runs have.

    mode: of the step.
    step: as the mode counts it.
    previous: the step of the mode that was compared before; -1 if there is none.
    updates: steps of training before it.
    sides: both runs' files by worker.
    """

    mode: ModeKeys
    step: int
    previous: int
    updates: int
    sides: Mapping[str, tuple[Side, Side]]

    @property
    def after_gap(self) -> bool:
        """True where steps that were not compared lie before it."""
        return self.previous != self.step - 1


def step_pairs(here: Trial, there: Trial) -> list[StepPair]:
    """Return the steps that both runs have, in the order of the first one: as their modes count them, by worker."""
    found: dict[tuple[ModeKeys, int], dict[str, tuple[Side, Side]]] = {}
    named = same_workers(here, there)
    for number in here.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        for worker, file in sorted(here.step_table.files(number).items()):
            side = Side(here, file)
            other = side.counterpart(there, named.get(worker, worker))
            if other is not None:
                found.setdefault((file.index.mode, file.index.mode_step), {})[worker] = side, other
    pairs: list[StepPair] = []
    previous: dict[ModeKeys, int] = {}
    updates = 0
    for (mode, step), sides in found.items():
        trains = mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)
        updates = step if trains else updates
        pairs.append(StepPair(mode, step, previous.get(mode, -1), updates if trains else updates + 1, sides))
        previous[mode] = step
    return pairs


def same_workers(here: Trial, there: Trial) -> dict[str, str]:
    """Return who of the second run stands for each worker of the first one: the one of its name.

    Where none has the name of another, as with names of devices, they do so in order, if there are as many.
    """
    mine, its = here.workers(), there.workers()
    if not {*mine} & {*its} and len(mine) == len(its):
        return dict(zip(mine, its, strict=True))
    return {worker: worker for worker in mine if worker in its}


def steps_of(trial: Trial) -> set[tuple[ModeKeys, int]]:
    """Return the steps of a run as their modes count them."""
    table = trial.step_table
    return {
        (file.index.mode, file.index.mode_step)
        for step in table.steps(ModeKeys.GLOBAL, incomplete=True)
        for file in table.files(step).values()
    }
