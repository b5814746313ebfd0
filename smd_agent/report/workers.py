"""Several workers beside each other: how far each is from the others, and which one is the farthest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.printable import printable
from smd_agent.report.line_charts import MOST_LINES, MOST_POINTS, Columns, Line
from smd_agent.rules.step_view import StepView

# The odd one is so many times as far from the middle as the next one, and so far at least.
_TIMES = 3.0
_AT_LEAST = 0.01
_FEWEST = 3

QUANTITIES = {"loss": "Loss", "gradient": "Norm of all gradients", "weight": "Norm of all parameters"}
"""What workers are compared by, and what the page calls it."""


@dataclass(frozen=True)
class Spread:
    """The distance of a worker from the middle of all, by quantity: the median over the steps, as a share.

    ``not_finite_from`` is the first step at which a quantity is not finite; None where all are.
    """

    worker: str
    distances: dict[str, float]
    not_finite_from: int | None

    @property
    def distance(self) -> float:
        """The largest one; infinite where something is not finite."""
        return math.inf if self.not_finite_from is not None else max(self.distances.values(), default=0.0)


class Workers:
    """The workers of a run.

    Args:
        steps: of the run, counted over all modes.
    """

    def __init__(self, steps: Sequence[int]) -> None:
        self._columns = Columns(steps, MOST_POINTS)
        self._lines: dict[str, dict[str, Line]] = {quantity: {} for quantity in QUANTITIES}

    def add(self, step: StepView) -> None:
        """Take what a worker saved at a step of the training."""
        place = self._columns.place(step.place.global_step)
        if place is None or step.mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            return
        losses = step.numbers(step.names(CollectionKeys.LOSSES)).values[:1]
        gradients = step.column("l2", step.names(CollectionKeys.GRADIENTS)).values
        weights = step.column("l2", step.names(CollectionKeys.WEIGHTS, CollectionKeys.BIASES)).values
        for quantity, numbers in (("loss", losses), ("gradient", gradients), ("weight", weights)):
            if len(numbers):
                value = float(numbers[0] if quantity == "loss" else np.sqrt(np.square(numbers).sum()))
                line = self._lines[quantity].setdefault(step.worker, Line())
                line.add(place, step.place.global_step, value)

    def charts(self) -> list[dict[str, Any]]:
        """Return a chart of each quantity for JSON, with a line for each worker, the odd ones first."""
        order = [one.worker for one in self.spreads()][:MOST_LINES]
        return [
            {
                "title": QUANTITIES[quantity],
                "lines": [
                    {"label": printable(name), "mode": "", **lines[name].to_json()} for name in order if name in lines
                ],
            }
            for quantity, lines in self._lines.items()
            if lines
        ]

    def spreads(self) -> list[Spread]:
        """Return the workers, the farthest from the others first."""
        names = sorted(set().union(*self._lines.values()))
        distances: dict[str, dict[str, float]] = {name: {} for name in names}
        for quantity, lines in self._lines.items():
            middles = _middles(lines)
            for name, line in lines.items():
                shares = [
                    abs(value - middles[step]) / max(abs(middles[step]), 1e-300)
                    for step, value in zip(line.steps, line.values, strict=True)
                    if math.isfinite(value) and step in middles
                ]
                if shares:
                    distances[name][quantity] = median(shares)
        found = [Spread(name, distances[name], self._not_finite_from(name)) for name in names]
        return sorted(found, key=lambda one: (-one.distance, one.not_finite_from or 0, one.worker))

    def odd_one(self) -> Spread | None:
        """Return the worker that is not like the others; None where they are alike, or only two."""
        spreads = self.spreads()
        if len(spreads) < _FEWEST:
            return None
        first, second = spreads[0], spreads[1]
        if first.not_finite_from is not None:
            return first if first.not_finite_from < (second.not_finite_from or math.inf) else None
        is_far = first.distance >= _AT_LEAST and first.distance >= _TIMES * second.distance
        return first if is_far else None

    def _not_finite_from(self, worker: str) -> int | None:
        steps = [
            step
            for lines in self._lines.values()
            if worker in lines
            for step, value in zip(lines[worker].steps, lines[worker].values, strict=True)
            if not math.isfinite(value)
        ]
        return min(steps, default=None)


def _middles(lines: dict[str, Line]) -> dict[int, float]:
    """Return the median over the workers at each step."""
    values: dict[int, list[float]] = {}
    for line in lines.values():
        for step, value in zip(line.steps, line.values, strict=True):
            if math.isfinite(value):
                values.setdefault(step, []).append(value)
    return {step: median(own) for step, own in values.items()}
