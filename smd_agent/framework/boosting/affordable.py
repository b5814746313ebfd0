"""Collections of boosted trainings that nobody asked for by name: they are saved as far as that takes little time."""

from __future__ import annotations

import time
from collections.abc import Callable

from smd_agent import guard
from smd_agent.core.budget import SHARE, Allowance
from smd_agent.core.overhead import overhead

SECONDS = 1.0
"""Seconds that saving may take in all, however short the training is, by the usual budget."""
BUDGETS = 2
"""Part of the time since the first saved round that it may take, if that is more, in budgets."""


class Affordable:
    """The time for such collections in the trainings of one run, and what was left out for lack of it.

    Args:
        is_named: tells whether somebody asked for a collection by its name.
        note: is told a collection that is left out of a round, and why.
        spent: tells the seconds that saving took in the rounds before.
        now: tells the time in seconds.
        budget: part of the run's time; see ``HookSettings``.

    Attributes:
        is_named: the same.
        too_long: why something is left out, in words.
    """

    def __init__(
        self,
        is_named: Callable[[str], bool],
        note: Callable[[str, str], object],
        spent: Callable[[], float] = lambda: overhead.seconds,
        now: Callable[[], float] = time.perf_counter,
        budget: float = SHARE,
    ) -> None:
        self.is_named = is_named
        self._note = note
        self._spent, self._now = spent, now
        self._began = 0.0
        seconds, share = SECONDS * budget / SHARE, BUDGETS * budget
        self.too_long = f"it would have taken more than {seconds:g} s and {100 * share:g}% of the time"
        self._allowance = Allowance(seconds, share, self._spent_by_now, now)
        # Of each collection, what it took last, and the rounds without it.
        self._took: dict[str, float] = {}
        self._left_out: dict[str, list[int]] = {}

    def begin_round(self) -> None:
        """A round is about to be saved."""
        self._began = self._now()

    def took(self, collection: str) -> float | None:
        """The seconds that saving a collection took last; None if it was not saved yet."""
        return self._took.get(collection)

    def offer(self, collection: str, number: int, part: float, seconds: float, save: Callable[[], object]) -> None:
        """Save a collection of a round, if there is time for it.

        Args:
            collection: its name.
            number: of the round.
            part: of all the time that the collection may make use of.
            seconds: that it will take, as far as that is known.
            save: saves it.
        """
        if not self._allowance.is_left(seconds, part):
            if collection not in self._left_out:
                self._note(collection, self.too_long)
            self._left_out.setdefault(collection, []).append(number)
            return
        began = self._now()
        try:
            save()
        finally:
            self._took[collection] = self._now() - began

    def tell(self) -> None:
        """Say in one line what was left out, of which rounds, and by which word it is saved."""
        alike: dict[tuple[int, int, int], list[str]] = {}
        for collection, rounds in self._left_out.items():
            alike.setdefault((len(rounds), rounds[0], rounds[-1]), []).append(collection)
        if alike:
            parts = [f"{', '.join(names)} of {_rounds(*rounds)}" for rounds, names in alike.items()]
            word = f"--save {','.join(self._left_out)}"
            line = f"left out, as {self.too_long}: {'; '.join(parts)}; asked for by name, as by {word}, it is saved"
            guard.say_once(("left out", line), line)

    def _spent_by_now(self) -> float:
        return self._spent() + self._now() - self._began


def _rounds(count: int, first: int, last: int) -> str:
    return f"round {first}" if count == 1 else f"{count} saved rounds, {first} to {last}"
