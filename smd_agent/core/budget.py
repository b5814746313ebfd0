"""Budgets of what nobody asked for: a small share of the run's time.

How often something is taken in steps that are not saved follows from what it takes: in every step, in every second,
fourth and so on. The first steps are taken all, as long as they take little in all. What is saved is saved as far as
the time is enough that there is for it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection

FIRST = 30
ALLOWANCE = 0.5
"""Seconds that the first steps may take, whatever their share is."""

SHARE = 0.01
"""Part of the run's time that all of it may take, unless the configuration says otherwise."""
_LONGEST = 1 << 16
# What a row takes, as far as nothing else is known; and the rows that a run has in any case. These take 0.06 s in all
# where steps are short, and 0.4 s where each step finds the processor's caches full of other things.
_ROW_SECONDS = 60e-6
_MOST_ROW_SECONDS = 500e-6
FIRST_ROWS = 1000
_LOOKED_AT = 15


class Allowance:
    """The time that saving may take: some seconds, or a part of the time that has passed, if that is more.

    Both are counted from the first question on.

    Args:
        seconds: that it may take, however little time has passed.
        share: of the time that has passed.
        spent: tells the seconds that saving has taken so far.
        now: tells the time in seconds.
    """

    def __init__(
        self, seconds: float, share: float, spent: Callable[[], float], now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._seconds, self._share = seconds, share
        self._spent, self._now = spent, now
        self._since: tuple[float, float] | None = None

    def is_left(self, wanted: float = 0.0, part: float = 1.0) -> bool:
        """True if a part of the time is more than what saving has taken, and so many seconds."""
        if self._since is None:
            self._since = self._spent(), self._now()
        spent, passed = self._spent() - self._since[0], self._now() - self._since[1]
        return spent + wanted < part * max(self._seconds, self._share * passed)


class Budget:
    """The steps in which one thing is taken.

    Args:
        share: of the run's time that it may take; after a thousand steps half of that.

    Attributes:
        every: it is taken in the steps whose number, counted from the first one of this process, this divides.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self.every = 1
        self._steps = 0
        self._spent = 0.0
        self._costs: deque[float] = deque(maxlen=_LOOKED_AT)
        # Time of the steps since it was looked at last, and their number.
        self._lasted = 0.0
        self._counted = 0

    def takes(self) -> bool:
        """True if the step that begins takes it; asked once a step."""
        number, self._steps = self._steps, self._steps + 1
        return (number < FIRST and self._spent < ALLOWANCE) or number % self.every == 0

    def step_took(self, seconds: float) -> None:
        """A step of the run took so long, beside what is taken in it."""
        self._lasted += seconds
        self._counted += 1

    def took(self, seconds: float) -> None:
        """Note that it was taken, which took so long."""
        self._spent += seconds
        self._costs.append(seconds)
        if self._counted:
            # What it does to the caches of the program is about as much as what it takes itself.
            share = self._share if self._steps < FIRST_ROWS else self._share / 2
            self._choose(_middle(self._costs), self._lasted / self._counted * share)
            if self._counted > _LOOKED_AT * self.every:
                self._lasted, self._counted = 0.0, 0

    def _choose(self, cost: float, allowed: float) -> None:
        while cost > allowed * self.every and self.every < _LONGEST:
            self.every *= 2
        # Not to and fro: it becomes more frequent only where there is room for twice as much.
        while self.every > 1 and 4 * cost < allowed * self.every:
            self.every //= 2


def _middle(numbers: Collection[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


class Rests:
    """The steps between two rows of the series, of which nothing is taken: a short step takes hardly longer than a row.

    What a row takes is told by the steps without one, as most of it is what it does to the program around it.

    Args:
        share: of the run's time that rows may take.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._rows = 0
        self._own = 0.0
        self._with: deque[float] = deque(maxlen=_LOOKED_AT)
        self._without: deque[float] = deque(maxlen=_LOOKED_AT)
        self._every = 1

    def after(self, seconds: float, others: float, own: float = 0.0) -> int:
        """The number of steps that have no row after one that has.

        Args:
            seconds: that this one took.
            others: that one of those before it took, which had none; 0 where there was none.
            own: that its row took at least, which longer steps hide in what they differ by.
        """
        self._rows += 1
        self._with.append(seconds)
        if others:
            self._without.append(others)
        if self._rows < FIRST_ROWS:
            return 0
        # A pause of the program amid a few steps without a row would be taken for their usual time.
        step, cost = min(_middle(self._with), _middle(self._without or self._with)), _ROW_SECONDS
        self._own += (own - self._own) / _LOOKED_AT
        if len(self._without) == _LOOKED_AT:
            cost = min(max(_middle(self._with) - step, cost / 4), cost * 4)
        cost = max(cost, min(self._own, _MOST_ROW_SECONDS))
        wanted = cost / (self._share * max(step, 1e-9))
        # Not to and fro: there is room before it becomes more frequent.
        if wanted > self._every or 4 * wanted < self._every:
            self._every = min(1 << max(math.ceil(math.log2(wanted)), 0), _LONGEST) if wanted > 1 else 1
        return self._every - 1
