"""The summaries of saved tensors: those that are stored, and, where the whole tensor is, those computed from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.reduction_config import OPS
from smd_agent.core.reductions import reduce_batch, reducible
from smd_agent.errors import SMDebugError

if TYPE_CHECKING:
    from smd_agent.analysis.steps import Contents, StepTable
    from smd_agent.core.modes import ModeKeys
    from smd_agent.formats.event_decoder import Form, SavedTensor
    from smd_agent.storage.index_files import StepIndex


class TensorSource(Protocol):
    """The steps and values of a run; a `Trial` is one."""

    @property
    def step_table(self) -> StepTable:
        """The steps found so far."""

    def maybe_refresh(self) -> None:
        """Look for new steps unless all are known or refreshing is switched off."""

    def workers(self) -> list[str]:
        """Return the workers that write to the run, in order."""

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it was not saved."""

    def contents(self, file: StepIndex) -> Contents:
        """Return the tensors and reductions of one worker's step."""

    def read(self, file: StepIndex, stored_name: str) -> SavedTensor:
        """Read what one worker stored under a name at one step."""

    def bring(self, file: StepIndex, stored_names: Sequence[str]) -> None:
        """Read the bytes of small tensors of one step at once, which `read` and `form` then need not do one by one."""

    def number(self, file: StepIndex, stored_name: str) -> np.generic:
        """Read a number; raises DamagedRecord if it is none."""

    def numbers(self, file: StepIndex, stored_names: Iterable[str]) -> dict[str, float]:
        """Read the numbers stored under some names at one step at once; some may be left out, for `number` to read."""

    def form(self, file: StepIndex, stored_name: str) -> Form | None:
        """Tell dtype and shape of what one worker stored under a name, without reading its values."""


STATISTICS = ("min", "max", "mean", "std", "l2", "zero_share", "nan_count", "inf_count")
"""What is told of every tensor: the last three are a share from 0 to 1 and numbers of elements."""

# Of a record that is read and computed together with others.
_SMALL_BYTES = 1 << 14


@dataclass(frozen=True)
class Measured:
    """The statistics of one tensor as one worker saved it at one step.

    Attributes:
        name: of the tensor.
        numbers: its statistics, by name. `STATISTICS` that cannot be known are left out. Stored reductions that are
            not among these are there too, those of absolute values as ``abs_mean``.
        record: the whole tensor, if it had to be read.
        problem: why a part of it cannot be read; None if all can.
    """

    name: str
    numbers: dict[str, float]
    record: SavedTensor | None = None
    problem: SMDebugError | None = None


def measure(
    source: TensorSource, file: StepIndex, names: Iterable[str], whole: bool = False, largest: int | None = None
) -> Iterator[Measured]:
    """Tell the statistics of tensors of one step, reading the numbers that are stored of them at once.

    Args:
        source: the trial.
        file: of the step and the worker.
        names: of tensors; those that were not saved are left out.
        whole: read whole tensors where they are saved, even if their statistics are stored.
        largest: in bytes; larger tensors are not read to compute statistics that are not stored.
    """
    contents = source.contents(file)
    names = [name for name in names if name in contents.names]
    reductions = {name: contents.reductions.get(name, {}) for name in names}
    stored = {name: {op: place for op, place in ops.items() if op[0] in OPS} for name, ops in reductions.items()}
    numbers = source.numbers(file, (place for ops in stored.values() for place in ops.values()))
    lacking = [name for name in names if not {*STATISTICS} <= {op for op, absolute in stored[name] if not absolute}]
    small = _small(source, file, lacking, _SMALL_BYTES if largest is None else min(largest, _SMALL_BYTES))
    for name in names:
        found: dict[str, float] = {}
        problem = record = None
        for (op, absolute), place in stored[name].items():
            number = _stored(source, file, place, numbers)
            if isinstance(number, SMDebugError):
                problem = number
            else:
                found[f"abs_{op}" if absolute else op] = number
        location = file.index.payload.location(name)
        lacks = not all(statistic in found for statistic in STATISTICS)
        if name in small:
            record, computed = small[name]
            found = computed | found
        elif location is not None and (whole or (lacks and (largest is None or location[1] <= largest))):
            try:
                record = source.read(file, name)
                found = compute(record.value, STATISTICS) | found
            except SMDebugError as error:
                problem = error
        yield Measured(name, found, record, problem)


def _small(
    source: TensorSource, file: StepIndex, names: list[str], largest: int
) -> dict[str, tuple[SavedTensor, dict[str, float]]]:
    """Those that are small, read and computed together; what is damaged is not among them."""
    payload = file.index.payload
    places = ((name, payload.location(name)) for name in names)
    small = [name for name, place in places if place is not None and place[1] <= largest]
    records: dict[str, SavedTensor] = {}
    if len(small) > 1:
        source.bring(file, small)
        for name in small:
            with suppress(SMDebugError):
                records[name] = source.read(file, name)
    alike = [name for name, record in records.items() if record.value.dtype.kind in "fiub" and record.value.size]
    rows = (
        reduce_batch([records[name].value for name in alike], [(name, False) for name in STATISTICS]) if alike else ()
    )
    return {
        name: (records[name], dict(zip(STATISTICS, row.tolist(), strict=True)))
        for name, row in zip(alike, rows, strict=True)
    }


def compute(values: npt.NDArray[Any], wanted: Iterable[str]) -> dict[str, float]:
    """Return those of the wanted statistics that values of this type have: none of text, of complex numbers not all."""
    wanted = [name for name in wanted if reducible(values.dtype, [(name, False)])]
    if not wanted or not values.size:
        return {}
    computed = reduce_batch([values], [(name, False) for name in wanted])[0].tolist()
    return dict(zip(wanted, computed, strict=True))


def _stored(source: TensorSource, file: StepIndex, place: str, numbers: Mapping[str, float]) -> float | SMDebugError:
    """Return a stored number, or the error that says why it cannot be read."""
    try:
        # One that others have stored in another form, or that is damaged, is not among those read at once.
        return numbers[place] if place in numbers else float(source.number(file, place))
    except SMDebugError as error:
        return error
