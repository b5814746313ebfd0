"""All that the page shows of a run, gathered step by step: what is held grows with the picture, not with the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from smd_agent.analysis.trained import trained_states
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.report.grids import KINDS, Grid, NonFinite
from smd_agent.report.lines import Lines
from smd_agent.report.outcome import Outcome, outcome_of
from smd_agent.report.tensors import Ends
from smd_agent.report.workers import Workers
from smd_agent.rules.step_view import RunView, StepView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from smd_agent.analysis.names import Contents
    from smd_agent.analysis.trial import Trial
    from smd_agent.storage.index_files import StepIndex


@dataclass
class Collected:
    """What was gathered of a run.

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
