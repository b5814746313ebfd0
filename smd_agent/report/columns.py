"""The steps of a picture: where they are too many, some that follow each other share a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Columns:
    """Columns for some steps, as many in each, but for the last one.

    Args:
        steps: counted over all modes, in order.
        most: how many columns there may be.

    Attributes:
        per_column: how many steps share one.
        steps: the first step of each.
    """

    def __init__(self, steps: Sequence[int], most: int) -> None:
        self.per_column = max(-(-len(steps) // most), 1)
        self.steps = [*steps[:: self.per_column]]
        self._places = {step: number // self.per_column for number, step in enumerate(steps)}

    def place(self, step: int) -> int | None:
        """Return the column of a step; None where it is none of these."""
        return self._places.get(step)
