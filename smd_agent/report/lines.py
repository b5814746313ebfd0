"""Numbers over the steps that the page draws as lines: losses, metrics, settings of the optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import OPTIMIZER
from smd_agent.printable import printable
from smd_agent.report.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smd_agent.rules.step_view import StepView

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
