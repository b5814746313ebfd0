"""Numbers over the steps that the page draws as lines: losses, metrics, settings, and those of a second run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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

# Of which chart each number of the series is.
_SERIES = {
    "series/loss": CollectionKeys.LOSSES,
    "series/learning_rate": CollectionKeys.OPTIMIZER,
    "series/gradient_l2": CollectionKeys.OPTIMIZER,
    "series/update_l2": CollectionKeys.OPTIMIZER,
}

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

    @classmethod
    def of(cls, steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64], every: int) -> Line:
        """Return a line of numbers of which so many share a point."""
        line = cls()
        line.steps = steps[::every].tolist()
        line.values = np.maximum.reduceat(values, np.arange(0, len(values), every)).tolist()
        return line

    def is_part_of(self, steps: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> bool:
        """Tell whether a number has the values of this line at all of its steps."""
        places = np.minimum(np.searchsorted(steps, self.steps), len(steps) - 1)
        same = np.isclose(values[places], self.values, rtol=1e-6, atol=0, equal_nan=True)
        return bool(np.array_equal(steps[places], self.steps) and same.all())

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON; of numbers that are not finite, text."""
        return {"steps": self.steps, "values": [number_or_text(value) for value in self.values]}


class Lines:
    """Losses, metrics and settings of a run.

    Args:
        steps: of the run, counted over all modes.

    Attributes:
        columns: which saved steps share a point.
        found: the lines by collection, and by the name of the number and the mode.
        told: of the steps of the series whose modes count them otherwise, by their numbers: mode, and number in it.
    """

    def __init__(self, steps: Sequence[int]) -> None:
        self.columns = Columns(steps, MOST_POINTS)
        self.found: dict[str, dict[tuple[str, ModeKeys], Line]] = {group: {} for group in CHARTS}
        self.told: dict[int, tuple[str, int]] = {}
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

    def add_series(self, trial: Trial) -> None:
        """Take what the first worker has noted of every training step, after all that was saved.

        A number that was saved, too, and is the same at all of those steps, has one line, with every step.
        """
        table = next(iter(trial.series_of_steps().values()), None)
        for name, group in _SERIES.items():
            for mode in ModeKeys:
                rows = (
                    None if table is None or name not in table else table.is_there(name) & (table.modes == mode.value)
                )
                if table is None or rows is None or not rows.any():
                    continue
                every = -(-int(rows.sum()) // MOST_POINTS)
                line = Line.of(table.steps[rows], table[name][rows], every)
                own = self.found[group]
                same = [
                    key for key, saved in own.items() if key[1] is mode and saved.is_part_of(table.steps, table[name])
                ]
                own.update(dict.fromkeys(same or [(name, mode)], line))
                numbers = table.mode_steps[rows][::every].tolist()
                self.told |= {
                    step: (mode.name, number)
                    for step, number in zip(line.steps, numbers, strict=True)
                    if step != number
                }

    @property
    def last(self) -> int:
        """The last step of all lines, 0 without any."""
        return max((line.steps[-1] for group in self.found.values() for line in group.values()), default=0)

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
        self.lines.add_series(trial)
        drawn = {step for group in self.lines.found.values() for line in group.values() for step in line.steps}
        steps = sorted({*steps, *drawn})
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


def _global_step(trial: Trial, mode: ModeKeys, number: int) -> int | None:
    saved = trial.step_table.global_step(mode, number)
    return trial.series_source.step_table.global_step(mode, number) if saved is None else saved


def _places(trial: Trial, first: Trial, steps: list[int]) -> tuple[dict[int, int], dict[int, tuple[str, int]]]:
    """Return where each step of a run stands among those of the first one, and how its mode counts it if none does."""
    places: dict[int, int] = {}
    told: dict[int, tuple[str, int]] = {}
    shift, before = 0, -1
    for step in steps:
        own = trial.step_table.mode_step(step) or trial.series_source.step_table.mode_step(step)
        same = None if own is None else _global_step(first, *own)
        if same is not None:
            shift = same - step
        # Where modes take turns otherwise than in the first run, the order stays that of this one.
        place = max(step + shift, before + 1)
        if own is not None and place != same:
            told[place] = (own[0].name, own[1])
        places[step] = before = place
    return places, told
