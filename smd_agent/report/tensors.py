"""A single tensor on the page: its form, statistics of its first and last step, a histogram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smd_agent.analysis.statistics import measure
from smd_agent.core.reduction_config import HISTOGRAM_OP
from smd_agent.core.reductions import histogram
from smd_agent.errors import SMDebugError
from smd_agent.printable import printable
from smd_agent.report.lines import number_or_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from smd_agent.analysis.trial import Trial
    from smd_agent.storage.index_files import StepIndex

_SHOWN = ("min", "max", "mean", "std", "l2", "zero_share", "nan_count", "inf_count", "dead_share", "saturated_share")
# In bytes; larger ones are not read for a histogram.
_LARGEST = 10_000_000


class Ends:
    """The first and the last step at which each tensor was saved by the first worker."""

    def __init__(self) -> None:
        self._ends: dict[str, list[StepIndex]] = {}

    def add(self, names: Iterable[str], first: StepIndex, last: StepIndex) -> None:
        """Take the first and the last of some files with the same tensors."""
        for name in names:
            known = self._ends.setdefault(name, [first, last])
            known[0] = min(known[0], first, key=lambda file: file.step)
            known[1] = max(known[1], last, key=lambda file: file.step)

    def details(self, trial: Trial, names: Iterable[str], states: Mapping[str, str]) -> dict[str, Any]:
        """Return what is known of tensors for JSON, by name.

        Args:
            trial: the run.
            names: of the tensors.
            states: of parameters whether they are trained, by name.
        """
        found: dict[str, Any] = {}
        by_file: dict[tuple[int, int], tuple[StepIndex, list[str]]] = {}
        for name in names:
            if name in self._ends:
                for end, file in enumerate(self._ends[name]):
                    by_file.setdefault((file.step, end), (file, []))[1].append(name)
        for (step, _), (file, own) in sorted(by_file.items()):
            for measured in measure(trial, file, own, largest=_LARGEST):
                told = found.setdefault(printable(measured.name), _form(trial, file, measured.name, states))
                point: dict[str, Any] = {"step": step, "mode": file.index.mode.name, "modeStep": file.index.mode_step}
                point["numbers"] = {
                    name: number_or_text(measured.numbers[name]) for name in _SHOWN if name in measured.numbers
                }
                value = None if measured.record is None else measured.record.value
                counts = _histogram(trial, file, measured.name, value)
                if counts is not None:
                    point["histogram"] = [[place, count] for place, count in enumerate(counts.tolist()) if count]
                if not told["ends"] or told["ends"][-1]["step"] != step:
                    told["ends"].append(point)
        return found


def _form(trial: Trial, file: StepIndex, name: str, states: Mapping[str, str]) -> dict[str, Any]:
    form = trial.form(file, name)
    told: dict[str, Any] = {"ends": []}
    if form is not None:
        told.update(dtype=str(form.dtype), shape=[*map(int, form.shape)])
    if name in states:
        told["state"] = states[name]
    return told


def _histogram(trial: Trial, file: StepIndex, name: str, value: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    place = trial.contents(file).reductions.get(name, {}).get(HISTOGRAM_OP)
    try:
        if place is not None:
            stored = trial.read(file, place).value.reshape(-1)
            return stored if stored.size == histogram.BUCKETS and stored.dtype.kind in "iu" else None
        location = file.index.payload.location(name)
        if value is None and location is not None and location[1] <= _LARGEST:
            value = trial.read(file, name).value
    except SMDebugError:
        # The rules have read it too, and what they could not read is told beside them.
        return None
    if value is None or value.dtype.kind not in "fiub" or value.size < 2:
        return None
    return histogram.counts(value.reshape(-1))
