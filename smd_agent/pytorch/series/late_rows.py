"""Rows of numbers that an accelerator is yet to compute: they are brought while the next step runs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

import torch

from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_rows import At
from smd_agent.interpreter.never_freed import never_free
from smd_agent.pytorch.device.reductions import HostCopy
from smd_agent.pytorch.own_operations import apart, without_gradients

Number: TypeAlias = float | torch.Tensor
"""A number, or a tensor of the shape () and float64 on an accelerator that will be it."""

DEVICES = ("cuda", "xpu")
"""Devices that compute as they are asked, and tell when they have."""

# Rows that are on their way: more only where the program asks for steps faster than they are computed.
_MOST = 64


class Part(NamedTuple):
    """Some numbers of a row.

    places: of the numbers in the row; one at -1 is left out.
    values: the numbers, where they are there at once, else a tensor of float64 on an accelerator.
    """

    places: list[int]
    values: list[float] | torch.Tensor


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
            self._series.take(table, *at, names, numbers)  # type: ignore[arg-type]
            return
        places = [[i] for i, number in enumerate(numbers) if is_a(number, torch.Tensor)]
        known = [number if type(number) is float else ABSENT for number in numbers]
        late = [Part(place, cast("torch.Tensor", numbers[place[0]]).reshape(1)) for place in places]
        self._take(_Row(table, at, names, known, _asked(late)))

    def take_parts(self, table: str, at: At, names: tuple[str, ...], parts: Sequence[Part]) -> None:
        """Take a row that comes in parts; numbers that are in none are absent."""
        values = [ABSENT] * len(names)
        late = []
        for part in parts:
            if type(part.values) is list:
                _put(values, part.places, part.values)
            else:
                late.append(part)
        self._take(_Row(table, at, names, values, _asked(late)))

    def _take(self, row: _Row) -> None:
        self._rows.append(row)
        self.settle(most=_MOST)

    def settle(self, most: int = 0, wait: bool = False) -> None:
        """Write the rows whose numbers are in; all of them if asked to wait, and all but so many otherwise."""
        while self._rows:
            row = self._rows[0]
            if not (wait or len(self._rows) > most > 0 or all(copy.ready() for _, copy in row.coming)):
                return
            self._rows.popleft()
            for places, copy in row.coming:
                _put(row.values, places, copy.array().tolist())
            self._series.add_at(row.table, *row.at, row.names, row.values)

    def drop(self) -> None:
        """Forget them all."""
        if os.getpid() != self._process:
            # In a process that a fork has made, to free memory that its parent shares with an accelerator ends it.
            never_free(self._rows)
        self._process, self._rows = os.getpid(), deque()


def _put(values: list[float], places: list[int], numbers: list[float]) -> None:
    for place, number in zip(places, numbers, strict=True):
        if place >= 0:
            values[place] = number


@apart
@without_gradients
def _asked(late: list[Part]) -> list[tuple[list[int], HostCopy]]:
    """Ask for parts that are on accelerators, by one copy for each of these."""
    devices: dict[torch.device, list[Part]] = {}
    for part in late:
        devices.setdefault(cast("torch.Tensor", part.values).device, []).append(part)
    return [
        (
            [place for part in parts for place in part.places],
            HostCopy(torch.cat([cast("torch.Tensor", part.values) for part in parts])),
        )
        for parts in devices.values()
    ]
