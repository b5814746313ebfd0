"""Metrics by which a trainer keeps its best checkpoint, stops early, or lowers the learning rate.

``usage/monitor/<metric>/largest_wins``   how many of its callbacks take the largest value of a metric for the best one.
``usage/monitor/<metric>/smallest_wins``  how many of them take the smallest one.

They are those of Keras's ``fit``, and of the trainers of Lightning and ``transformers``. A trainer is known by the
functions that are running. A callback that guesses the direction itself counts once it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from smd_agent.core.failure_domains import SETTINGS
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.step_events import ModelCall, ModelReturn, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.interpreter.callers import callers, first_argument

_KERAS = ("keras", "tf_keras")
_LIGHTNING = ("lightning", "pytorch_lightning")
# Of checkpoints, how many of the best are kept: not the best ones.
_ALL_OR_NONE = (0, -1)
_DIRECTIONS = {"max": True, "greater": True, "min": False, "less": False}


class MonitoredMetrics(UsageProbe, domain=SETTINGS, doing="looking at the metrics that callbacks go by"):
    """The monitored metrics of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._is_done = False

    # Calls of a compiled step are told of where their inputs are wanted, and that it has returned in any case.
    @on(ModelCall, ModelReturn)
    def look_at(self, _: ModelCall | ModelReturn) -> None:
        """Save them, once a step."""
        if self._is_done:
            return
        self._is_done = True
        found: dict[str, list[bool]] = {}
        for metric, largest_wins in monitored(callers()):
            found.setdefault(metric, []).append(largest_wins)
        for metric, largest in found.items():
            numbers = {"largest_wins": sum(largest), "smallest_wins": len(largest) - sum(largest)}
            self._usage.save(f"monitor/{metric}", numbers)


def monitored(frames: Iterable[FrameType]) -> Iterator[tuple[str, bool]]:
    """Yield each metric that a callback goes by, and whether the largest value wins.

    Args:
        frames: of the functions that are running. Variables are asked of those alone in which a trainer's loop runs:
            before Python 3.13 a frame that is asked keeps what they hold.
    """
    for frame in frames:
        module, name = frame.f_globals.get("__name__"), frame.f_code.co_name
        package = module.partition(".")[0] if is_a(module, str) else ""
        if name == "fit" and package in _KERAS:
            yield from _of_callbacks(attribute(frame.f_locals.get("callbacks"), "callbacks"))
        elif name == "fit" and package in _LIGHTNING:
            yield from _of_callbacks(attribute(first_argument(frame), "callbacks"))
        elif name == "train" and package == "transformers":
            yield from _of_arguments(attribute(first_argument(frame), "args"))


def _of_callbacks(callbacks: Any) -> Iterator[tuple[str, bool]]:
    for callback in callbacks if is_a(callbacks, list) else ():
        metric, keeps = attribute(callback, "monitor"), attribute(callback, "save_top_k")
        goes_by_none = attribute(callback, "save_best_only") is False or (is_a(keeps, int) and keeps in _ALL_OR_NONE)
        if not is_a(metric, str) or goes_by_none:
            continue
        way, compare = attribute(callback, "mode"), attribute(callback, "monitor_op")
        if not is_a(way, str) or way not in _DIRECTIONS:
            way = compare.__name__ if is_a(compare, FunctionType) or is_a(compare, np.ufunc) else ""
        if way in _DIRECTIONS:
            yield metric, _DIRECTIONS[way]


def _of_arguments(arguments: Any) -> Iterator[tuple[str, bool]]:
    metric, largest_wins = attribute(arguments, "metric_for_best_model"), attribute(arguments, "greater_is_better")
    if is_a(metric, str) and is_a(largest_wins, bool):
        yield metric, largest_wins
