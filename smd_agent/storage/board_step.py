"""One step as TensorBoard shows it: scalars and distributions, collected by the thread that saves them.

Their tags and bytes are made later, by whoever writes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.distribution import Distribution, distribution_of, has_distribution
from smd_agent.core.homes import Homes
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import REDUCTION_PREFIX


class BoardStep:
    """What is shown of one step of one worker.

    Args:
        step: over all modes.
        mode: of the step.
        wall_time: seconds since the epoch.
        homes: of the tensors; looked into when a tensor is added, and when it is written.

    Attributes:
        step, mode, wall_time, homes: the same.
        reductions: for the stored names of reductions that came together, their values.
        numbers: tensors of one element by name: the number, and the time that it has.
        distributions: of other tensors, by name.
    """

    def __init__(self, step: int, mode: ModeKeys, wall_time: float, homes: Homes) -> None:
        self.step = step
        self.mode = mode
        self.wall_time = wall_time
        self.homes = homes
        self.reductions: dict[tuple[str, ...], npt.NDArray[np.float64]] = {}
        self.numbers: dict[str, tuple[float, float]] = {}
        self.distributions: dict[str, Distribution] = {}

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        values = sum(one.nbytes for one in self.reductions.values())
        pictures = sum(one.places.nbytes + one.counts.nbytes + 200 for one in self.distributions.values())
        return values + pictures + 200 * len(self.numbers)

    def add(self, name: str, array: npt.NDArray[Any], wall_time: float | None = None) -> None:
        """Take a tensor that is saved whole; of a stored histogram nothing is taken.

        Args:
            name: its stored name.
            array: its values, which may change afterwards.
            wall_time: seconds since the epoch, if not the step's.
        """
        if name.startswith(REDUCTION_PREFIX):
            return
        if array.size == 1:
            if array.dtype.kind in "fiub":
                self.numbers[name] = float(array.reshape(-1)[0]), self.wall_time if wall_time is None else wall_time
            return
        home = self.homes.get(name)
        if home is not None and home.histogram and has_distribution(array):
            self.distributions[name] = distribution_of(array)

    def add_scalars(self, names: tuple[str, ...], values: npt.NDArray[np.float64]) -> None:
        """Take reductions: one number for each stored name."""
        self.reductions[names] = values.copy()

    def drop(self, names: set[str]) -> None:
        """Forget what was taken under these stored names."""
        for name in names:
            self.numbers.pop(name, None)
            self.distributions.pop(name, None)
        for stored, values in [*self.reductions.items()]:
            if not names.isdisjoint(stored):
                del self.reductions[stored]
                kept = [place for place, name in enumerate(stored) if name not in names]
                if kept:
                    self.reductions[tuple(stored[place] for place in kept)] = values[kept]
