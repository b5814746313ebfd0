"""Rows of numbers that an accelerator is yet to compute: they are brought while the next step runs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

import torch

from smd_agent.core.modes import ModeKeys
from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.never_freed import never_free
from smd_agent.pytorch.device.reductions import HostCopy
from smd_agent.pytorch.own_operations import apart, without_gradients

Number: TypeAlias = float | torch.Tensor
"""A number, or a tensor of the shape () and float64 on an accelerator that will be it."""

# Rows that are on their way: more only where the program asks for steps faster than they are computed.
_MOST = 64


class At(NamedTuple):
    """The step of a row."""

    step: int
    mode: ModeKeys
    mode_step: int


class _Row(NamedTuple):
    """A row, and what is to be put in its places."""

    table: str
    at: At
    names: tuple[str, ...]
    values: list[float]
    coming: list[tuple[list[int], HostCopy]]


class LateRows:
    """The rows of a hook that are on their way, the oldest first.

    Args:
        series: takes them.
    """

    def __init__(self, series: Series) -> None:
        self._series = series
        self._process = os.getpid()
        self._rows: deque[_Row] = deque()

    def take(self, table: str, at: At, names: tuple[str, ...], numbers: Sequence[Number]) -> None:
        """Take a row, some of whose numbers may be on an accelerator; it is written once all before it are."""
        if not self._rows and torch.Tensor not in map(type, numbers):
            self._series.add_at(table, *at, names, cast("Sequence[float]", numbers))
            return
        late = [i for i, number in enumerate(numbers) if is_a(number, torch.Tensor)]
        values = [number if type(number) is float else ABSENT for number in numbers]
        self._rows.append(_Row(table, at, names, values, _asked(late, numbers)))
        self.settle(most=_MOST)

    def settle(self, most: int = 0, wait: bool = False) -> None:
        """Write the rows whose numbers are in; all of them if asked to wait, and all but so many otherwise."""
        while self._rows:
            row = self._rows[0]
            if not (wait or len(self._rows) > most > 0 or all(copy.ready() for _, copy in row.coming)):
                return
            self._rows.popleft()
            for places, copy in row.coming:
                for place, number in zip(places, copy.array().tolist(), strict=True):
                    row.values[place] = number
            self._series.add_at(row.table, *row.at, row.names, row.values)

    def drop(self) -> None:
        """Forget them all."""
        if os.getpid() != self._process:
            # In a process that a fork has made, to free memory that its parent shares with an accelerator ends it.
            never_free(self._rows)
        self._process, self._rows = os.getpid(), deque()


@apart
@without_gradients
def _asked(late: list[int], numbers: Sequence[Number]) -> list[tuple[list[int], HostCopy]]:
    devices: dict[torch.device, list[int]] = {}
    for place in late:
        number = numbers[place]
        if is_a(number, torch.Tensor):
            devices.setdefault(number.device, []).append(place)
    return [
        (places, HostCopy(torch.stack([one for place in places if is_a(one := numbers[place], torch.Tensor)])))
        for places in devices.values()
    ]
