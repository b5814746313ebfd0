"""The steps that two runs have side by side, and the values that they have in common of a tensor at one of them.

Values are the tensor itself, or statistics that both have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.statistics import compute
from smd_agent.compare.distance import STATISTICS_AGREE, counts_apart, statistics_apart, values_apart
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import CHANNEL_SHARES, HISTOGRAM_OP, OPS

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.compare.distance import Distance
    from smd_agent.core.names import Op
    from smd_agent.storage.index_files import StepIndex


@dataclass(frozen=True)
class Side:
    """One step of one worker of one of two runs."""

    trial: Trial
    file: StepIndex

    def counterpart(self, other: Trial, worker: str | None = None) -> Side | None:
        """Return the same step of another run, as the mode counts it, of the same worker; None if it has none.

        Args:
            other: the run.
            worker: who stands for the worker there; by default the one of the same name.
        """
        index = self.file.index
        file = other.step_table.files(index.mode_step, index.mode).get(worker or self.file.worker)
        if file is None or (file.index.mode, file.index.mode_step) != (index.mode, index.mode_step):
            return None
        return Side(other, file)

    def is_whole(self, name: str) -> bool:
        """Tell whether the whole value of a tensor is saved."""
        return self.file.index.payload.location(name) is not None

    def value(self, name: str) -> npt.NDArray[Any]:
        """Return the whole value; raises what `Trial.read` raises."""
        return self.trial.read(self.file, name).value

    def stored(self, name: str) -> Mapping[Op, str]:
        """Return under which name each reduction of a tensor is stored."""
        return self.trial.contents(self.file).reductions.get(name, {})

    def can_know(self, name: str) -> set[Op]:
        """Return the reductions that are stored, or can be computed."""
        known = {op for op in self.stored(name) if op[0] in OPS}
        return known | {(op, a) for op in OPS for a in (False, True)} if self.is_whole(name) else known

    def statistics(self, name: str, wanted: set[Op]) -> dict[str, float]:
        """Return reductions as `can_know` has them by name, those of absolute values as ``abs_mean``."""
        stored = self.stored(name)
        found = {_text(op): float(self.trial.number(self.file, stored[op])) for op in wanted if op in stored}
        # Values do not tell where their channels are.
        rest = [op for op in wanted if op not in stored and op[0] not in CHANNEL_SHARES]
        if rest and self.is_whole(name):
            value = self.value(name)
            for absolute in {absolute for _, absolute in rest}:
                names = [op for op, of_absolute in rest if of_absolute == absolute]
                computed = compute(np.abs(value) if absolute else value, names)
                found |= {_text((op, absolute)): number for op, number in computed.items()}
        return found


@dataclass(frozen=True)
class Common:
    """The common part of a tensor of two runs: whole values, or else statistics by name; ``size`` in elements."""

    values: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None
    statistics: tuple[dict[str, float], dict[str, float]] = ({}, {})
    histograms: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None
    size: int | None = None
    computed: bool = False

    @property
    def numbers(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The values, or else the statistics as float64, in the same order."""
        if self.values is not None:
            return self.values
        here, there = (np.array([*one.values()], np.float64) for one in self.statistics)
        return here, there

    @property
    def apart(self) -> Distance | None:
        """Their distance; None if they are the same."""
        if self.values is not None:
            return values_apart(*self.values)
        found = statistics_apart(*self.statistics, self.size, STATISTICS_AGREE if self.computed else 0.0)
        return found or (counts_apart(*self.histograms) if self.histograms else None)


def common(here: Side, name: str, there: Side, other_name: str) -> Common | None:
    """Read what both have of a tensor; None if that is nothing.

    Raises:
        SMDebugError: a part of it cannot be read.
    """
    whole = here.is_whole(name), there.is_whole(other_name)
    if all(whole):
        return Common((here.value(name), there.value(other_name)))
    wanted = here.can_know(name) & there.can_know(other_name)
    mine, its = here.statistics(name, wanted), there.statistics(other_name, wanted)
    both = {key for key in mine if key in its}
    stored = here.stored(name), there.stored(other_name)
    histograms = None
    if all(HISTOGRAM_OP in one for one in stored):
        histograms = here.value(stored[0][HISTOGRAM_OP]), there.value(stored[1][HISTOGRAM_OP])
    if not both and histograms is None:
        return None
    statistics = {key: mine[key] for key in sorted(both)}, {key: its[key] for key in sorted(both)}
    return Common(None, statistics, histograms, size_of(here, name), any(whole))


def size_of(side: Side, name: str) -> int | None:
    """Return how many elements a tensor has; None where that is not known."""
    form = side.trial.form(side.file, name)
    return None if form is None else int(np.prod(form.shape, dtype=np.int64))


def _text(op: Op) -> str:
    return f"abs_{op[0]}" if op[1] else op[0]


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
