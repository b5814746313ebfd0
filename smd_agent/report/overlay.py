"""Losses and metrics of a second run, in the charts of the first one: each at the step that has its mode and number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smd_agent.core.modes import ModeKeys
from smd_agent.printable import printable
from smd_agent.report.lines import Lines
from smd_agent.rules.step_view import RunView, StepView

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial

    Charts = list[dict[str, Any]]


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
