"""Numbers over the steps that the page draws as lines: losses, metrics, settings, and those of a second run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import OPTIMIZER
from smd_agent.printable import printable
from smd_agent.rules.step_view import RunView, StepView

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial

Charts = list[dict[str, Any]]


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


MOST_POINTS = 2000
MOST_CHARTS = 12
MOST_LINES = 16

CHARTS = (CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.OPTIMIZER)
"""The collections whose members are drawn."""


class Line:
    """A number over the steps of one mode; where steps share a point, the largest of them, and NaN above all.

    Attributes:
        steps: of the points, counted over all modes.
        values: of the points.
    """

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self._last: int | None = None

    def add(self, point: int, step: int, value: float) -> None:
        """Take a number; ``point`` is the number of the point it belongs to."""
        if point == self._last:
            self.values[-1] = float(np.maximum(self.values[-1], value))
            return
        self._last = point
        self.steps.append(step)
        self.values.append(value)

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON; of numbers that are not finite, text."""
        return {"steps": self.steps, "values": [number_or_text(value) for value in self.values]}


class Lines:
    """Losses, metrics and settings of a run.

    Args:
        steps: of the run, counted over all modes.
    """

    def __init__(self, steps: Sequence[int]) -> None:
        self.columns = Columns(steps, MOST_POINTS)
        self.found: dict[str, dict[tuple[str, ModeKeys], Line]] = {group: {} for group in CHARTS}
        # Losses of several elements, such as one for each sample.
        self._means: set[str] = set()

    def add(self, step: StepView) -> None:
        """Take what a worker saved at a step; of several workers the first one is shown, unless one is not finite."""
        place = self.columns.place(step.place.global_step)
        if place is None:
            return
        taken: set[str] = set()
        for group in CHARTS:
            # A loss is among the metrics of some frameworks, too.
            names = tuple(name for name in step.names(group) if name not in taken)
            taken.update(names)
            if group == CollectionKeys.LOSSES:
                self._means.update(name for name in names if name not in self._means and step.size(name) != 1)
                numbers = step.column("mean", names)
            else:
                numbers = step.numbers(names)
            for name, value in numbers.items():
                line = self.found[group].setdefault((name, step.mode), Line())
                if not line.steps or line.steps[-1] != step.place.global_step or not math.isfinite(value):
                    line.add(place, step.place.global_step, value)

    def charts(self, group: str) -> list[dict[str, Any]]:
        """Return the charts of a collection for JSON: those of one name, or of several sets, have their lines in one.

        Of a loss of several elements that is their mean, and its chart's title says so.
        A setting of the optimizer that has one value all the time is left out; `constants` has it.
        """
        charts: dict[str, list[dict[str, Any]]] = {}
        for (name, mode), line in self.found[group].items():
            if group == CollectionKeys.OPTIMIZER and _is_constant(line):
                continue
            title, own = _title_of(name, group)
            title += ", mean" * (name in self._means)
            label = " ".join(part for part in (own, mode.name if mode is not ModeKeys.GLOBAL else "") if part)
            told = {"label": printable(label or title), "mode": mode.name, **line.to_json()}
            charts.setdefault(title, []).append(told)
        drawn = [*charts.items()][:MOST_CHARTS]
        return [{"title": printable(title), "lines": lines[:MOST_LINES]} for title, lines in drawn]

    def left_out(self, group: str) -> int:
        """Return how many lines of a collection there are that `charts` has no room for."""
        drawn = sum(len(chart["lines"]) for chart in self.charts(group))
        constants = len(self.constants()) if group == CollectionKeys.OPTIMIZER else 0
        return len(self.found[group]) - drawn - constants

    def constants(self) -> dict[str, float]:
        """Return the settings that have one value all the time, by name."""
        settings = self.found[CollectionKeys.OPTIMIZER].items()
        return {name.removeprefix(OPTIMIZER): line.values[0] for (name, _), line in settings if _is_constant(line)}


def number_or_text(value: float) -> float | str:
    """Return a number, or of one that JSON does not have, text such as ``nan``; to seven digits."""
    return float(f"{value:.7g}") if math.isfinite(value) else str(value)


def _title_of(name: str, group: str) -> tuple[str, str]:
    """Return what a chart is called, and what the line in it: of ``train-rmse`` it is the set."""
    if group == CollectionKeys.OPTIMIZER:
        head, _, setting = name.removeprefix(OPTIMIZER).rpartition("/")
        return setting, head
    own, dash, title = name.partition("-")
    return (title, own) if dash and title and own else (name, "")


def _is_constant(line: Line) -> bool:
    return len({*line.values}) == 1 and math.isfinite(line.values[0])


class Overlay:
    """The lines of a second run.

    Args:
        trial: the second run.
        first: the run whose steps the page counts.

    Attributes:
        lines: of the second run, at its own steps.
        names: what the first run and the second one are called in the charts.
    """

    def __init__(self, trial: Trial, first: Trial) -> None:
        steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
        self.lines = Lines(steps)
        view = RunView(trial)
        for step in steps:
            for _, file in sorted(trial.step_table.files(step).items()):
                self.lines.add(StepView(view, file))
        self.names = (first.name, trial.name) if first.name != trial.name else (first.path, trial.path)
        self._places, self._told = _places(trial, first, steps)

    @property
    def last(self) -> int:
        """The last step that its charts show."""
        return max(self._places.values(), default=0)

    @property
    def told(self) -> dict[int, tuple[str, int]]:
        """Of the steps that the first run does not have, by their places: mode, and number in it."""
        return self._told

    def charts(self, group: str, first: Charts) -> Charts:
        """Return the charts of a collection for JSON: those of the first run, with the lines of both."""
        charts = [{**chart, "lines": [self._named(line, 0) for line in chart["lines"]]} for chart in first]
        by_title = {chart["title"]: chart for chart in charts}
        for chart in self.lines.charts(group):
            lines = [self._named({**line, "steps": self._moved(line["steps"])}, 1) for line in chart["lines"]]
            if chart["title"] in by_title:
                by_title[chart["title"]]["lines"] += lines
            else:
                charts.append({**chart, "lines": lines})
        return charts

    def _named(self, line: dict[str, Any], run: int) -> dict[str, Any]:
        return {**line, "label": f"{printable(self.names[run])}: {line['label']}", "run": run}

    def _moved(self, steps: list[int]) -> list[int]:
        return [self._places[step] for step in steps]


def _places(trial: Trial, first: Trial, steps: list[int]) -> tuple[dict[int, int], dict[int, tuple[str, int]]]:
    """Return where each step of a run stands among those of the first one, and how its mode counts it if none does."""
    places: dict[int, int] = {}
    told: dict[int, tuple[str, int]] = {}
    shift, before = 0, -1
    for step in steps:
        own = trial.step_table.mode_step(step)
        same = None if own is None else first.step_table.global_step(*own)
        if same is not None:
            shift = same - step
        # Where modes take turns otherwise than in the first run, the order stays that of this one.
        place = max(step + shift, before + 1)
        if own is not None and place != same:
            told[place] = (own[0].name, own[1])
        places[step] = before = place
    return places, told
