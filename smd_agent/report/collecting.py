"""All that the page shows of a run, gathered step by step: what is held grows with the picture, not with the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from smd_agent.analysis.statistics import measure
from smd_agent.analysis.trained_parameters import trained_states
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import HISTOGRAM_OP
from smd_agent.core.reductions import histogram
from smd_agent.errors import SMDebugError
from smd_agent.printable import printable
from smd_agent.report.heatmaps import KINDS, Grid, NonFinite
from smd_agent.report.line_charts import Lines, number_or_text
from smd_agent.report.predictions import Outcome, outcome_of
from smd_agent.report.workers import Workers
from smd_agent.rules.step_view import RunView, StepView

if TYPE_CHECKING:
    from smd_agent.analysis.steps import Contents
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


@dataclass
class Collected:
    """The values that were gathered of a run.

    Attributes:
        trial: the run.
        steps: counted over all modes.
        grids: the pictures that have numbers.
        non_finite: the tensors with elements that are not finite.
        looked_at: how many tensors were looked at for that.
        lines: losses, metrics and settings.
        workers: None of a run with one.
        outcome: labels and predictions of the last step that has both.
        details: of each tensor that a picture shows, for JSON.
        states: of each parameter whether it is trained.
        times: when the first and the last step was saved, in seconds since the epoch.
        problems: what could not be read, each sentence once.
    """

    trial: Trial
    steps: list[int]
    lines: Lines
    workers: Workers | None
    grids: list[Grid] = field(default_factory=list)
    non_finite: Grid | None = None
    looked_at: int = 0
    outcome: Outcome | None = None
    details: dict[str, Any] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Part(Protocol):
    def add(self, step: StepView) -> None: ...


def collect(trial: Trial, marked: Iterable[str], progress: Callable[[int, int], None] | None = None) -> Collected:
    """Gather what the page shows.

    Args:
        trial: the run.
        marked: tensors that something was found on; where there are too many, these are shown.
        progress: is told how many steps are done, of how many.
    """
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    several = len(trial.workers()) > 1
    collected = Collected(trial, steps, Lines(steps), Workers(steps) if several else None)
    noted = trial.collections().get(CollectionKeys.PARAMETERS)
    if noted is not None:
        collected.states = trained_states(trial, noted, trial.tensor_names())
    run = RunView(trial)
    grids, non_finite, ends = _prepared(run, steps, [*marked]), NonFinite(steps), Ends()
    parts: list[_Part] = [*grids, non_finite, collected.lines]
    if collected.workers is not None:
        parts.append(collected.workers)
    first: dict[Contents, StepIndex] = {}
    last: dict[Contents, StepIndex] = {}
    with_outcome: StepIndex | None = None
    for done, step in enumerate(steps):
        if progress is not None:
            progress(done, len(steps))
        for _, file in sorted(trial.step_table.files(step).items()):
            view = StepView(run, file)
            for part in parts:
                part.add(view)
            contents = trial.contents(file)
            first.setdefault(contents, file)
            last[contents] = file
            if view.names(CollectionKeys.LABELS) and view.names(CollectionKeys.PREDICTIONS):
                with_outcome = file
    collected.lines.add_series(trial)
    for contents, file in first.items():
        ends.add(contents.names, file, last[contents])
    collected.times = [
        when for step in (*steps[:1], *steps[-1:]) if (when := _view_of(run, step).saved_at()) is not None
    ]
    collected.outcome = None if with_outcome is None else outcome_of(StepView(run, with_outcome))
    collected.grids = [grid.in_order() for grid in grids if not grid.is_empty]
    collected.non_finite, collected.looked_at = non_finite.grid(), len(non_finite.looked_at)
    shown = {name for grid in (*collected.grids, collected.non_finite) for name in grid.names}
    collected.details = ends.details(trial, sorted(shown), collected.states)
    collected.problems = [*run.problems]
    return collected


def _view_of(run: RunView, step: int) -> StepView:
    files = run.trial.step_table.files(step)
    return StepView(run, files[min(files)])


def _prepared(run: RunView, steps: Iterable[int], marked: list[str]) -> list[Grid]:
    """Return empty grids: their rows in the order in which tensors were saved first, their columns."""
    rows: dict[str, dict[str, None]] = {kind.key: {} for kind in KINDS}
    columns: dict[str, list[int]] = {kind.key: [] for kind in KINDS}
    seen: set[tuple[str, Contents]] = set()
    for step in steps:
        for _, file in sorted(run.trial.step_table.files(step).items()):
            view, contents = StepView(run, file), run.trial.contents(file)
            for kind in KINDS:
                names = kind.names(view)
                if names and columns[kind.key][-1:] != [step]:
                    columns[kind.key].append(step)
                if names and (kind.key, contents) not in seen:
                    seen.add((kind.key, contents))
                    place = _places(file, contents)
                    rows[kind.key].update(dict.fromkeys(sorted(names, key=lambda name: place.get(name, len(place)))))
    return [Grid(kind, rows[kind.key], columns[kind.key], marked) for kind in KINDS if rows[kind.key]]


def _places(file: StepIndex, contents: Contents) -> dict[str, int]:
    """Return where the first record of each tensor of a step is among all."""
    positions = file.index.payload.tensors.positions
    places = {name: positions[name] for name in contents.names if name in positions}
    for name, ops in contents.reductions.items():
        own = [positions[stored] for stored in ops.values() if stored in positions]
        places.setdefault(name, min(own, default=len(positions)))
    return places
