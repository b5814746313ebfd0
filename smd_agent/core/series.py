"""The series of a run: a few numbers of every step, saved or not, which go into small files that only grow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.core.budget import SHARE
from smd_agent.core.failure_domains import SERIES
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from smd_agent.core.clock import RunPosition
    from smd_agent.core.run_output import RunOutput


class Series:
    """Takes the numbers of each step and hands them to the run's files; a failure of it costs rows and nothing else.

    ``tables`` are ``steps``, one row for each step, and ``parameters``. Of two rows of one step the later one counts.

    Args:
        position: of the run.
        output: where the run goes.

    Attributes:
        budget: part of the run's time that all may take which is taken of every step.
    """

    def __init__(self, position: RunPosition, output: RunOutput) -> None:
        self._position = position
        self._output = output
        self.budget = SHARE

    @property
    def wanted(self) -> bool:
        """True if numbers are taken; whoever computes some looks at it first."""
        output = self._output
        return not (SERIES.off or output.off or output.writes is False) and output.sink.series.takes_rows

    # Called in every step: the fences leave out what counts the agent's time in saved steps.
    @partial(guard.fenced, domain=SERIES, doing="adding a row", then=None, again=False)
    def add(self, table: str, names: tuple[str, ...], values: Sequence[float]) -> None:
        """Take the numbers of the current step; only where they are ``wanted``.

        Args:
            table: ``steps`` or ``parameters``.
            names: of the numbers; the same object from row to row wherever that can be.
            values: as many numbers; ``ABSENT`` of ``formats.series`` where there is none.
        """
        position = self._position
        clock = position.clock
        self._output.sink.series.add(table, position.step, clock.mode, clock.step, names, values)

    @partial(guard.fenced, domain=SERIES, doing="adding a row", then=None, again=False)
    def add_at(
        self, table: str, step: int, mode: ModeKeys, mode_step: int, names: tuple[str, ...], values: Sequence[float]
    ) -> None:
        """Take numbers of any step, such as those of an accelerator, which come late; ``mode_step`` is in its mode."""
        self.take(table, step, mode, mode_step, names, values)

    def take(
        self, table: str, step: int, mode: ModeKeys, mode_step: int, names: tuple[str, ...], values: Sequence[float]
    ) -> None:
        """``add_at`` for a caller that is fenced itself."""
        if self.wanted:
            self._output.sink.series.add(table, step, mode, mode_step, names, values)
