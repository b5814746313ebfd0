"""Numbers of a run for SageMaker's metrics: lines of JSON in a file of this process, in the folder that a job names.

The agent of a SageMaker job reads ``<folder>/<pid>.json``, to which the library ``smexperiments`` appends too. A line
has ``MetricName`` (``<tensor>_<MODE>``), ``Value``, ``Timestamp`` (seconds since the epoch) and ``IterationNumber``
(the step in its mode). What cannot be written costs these lines and nothing else.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent import guard
from smd_agent.descriptors import open_above
from smd_agent.formats.event_encoder import Stamp

# What smexperiments takes, in seconds before and after now.
_OLDEST, _NEWEST = 14 * 86400, 2 * 3600

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class MetricStep:
    """The numbers of one step, collected by the thread that saves them.

    Args:
        stamp: when the step is, and of which mode.
        wanted: tells by a tensor's name whether it is one of the metrics.

    Attributes:
        stamp: the same.
        numbers: the mean of each tensor by name, and the time that it has, in seconds since the epoch.
    """

    def __init__(self, stamp: Stamp, wanted: Callable[[str], bool]) -> None:
        self.stamp = stamp
        self.numbers: dict[str, tuple[float, float]] = {}
        self._wanted = wanted

    def add(self, name: str, array: npt.NDArray[Any], wall_time: float | None = None) -> None:
        """Take a tensor that is saved, if it is one of the metrics; ``wall_time`` if it is not the step's."""
        if array.size and array.dtype.kind in "fiub" and self._wanted(name):
            value = float(array.reshape(-1)[0]) if array.size == 1 else float(np.mean(array, dtype=np.float64))
            self.numbers[name] = value, self.stamp.wall_time if wall_time is None else wall_time

    def drop(self, names: set[str]) -> None:
        """Forget tensors of these names: others of the same names follow."""
        for name in names:
            self.numbers.pop(name, None)


class MetricsFile:
    """The file of this process; it is made, and its folder too, with the first line.

    Args:
        folder: where it lies.
        wanted: tells by a tensor's name whether it is one of the metrics.
    """

    def __init__(self, folder: str, wanted: Callable[[str], bool]) -> None:
        self._folder = Path(folder)
        self._wanted = wanted
        self._descriptor = -1
        # Whether the last write has left a part of a line.
        self._torn = False

    def begin_step(self, stamp: Stamp) -> MetricStep:
        """Open a step."""
        return MetricStep(stamp, self._wanted)

    def commit(self, step: MetricStep, submit: Callable[[Callable[[], None]], None]) -> None:
        """Have a filled step written; ``submit`` has something done on the writer thread."""
        if step.numbers:
            submit(partial(self._write, step))

    def close(self) -> None:
        """Close the file; a step that follows opens it again."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    # On the writer thread.

    def _write(self, step: MetricStep) -> None:
        text = "".join(_lines(step)).encode()
        if not text:
            return
        try:
            self._append(text)
        except OSError as error:
            line = f"cannot write SageMaker's metrics to {self._folder} ({error}): the run goes on, further are tried"
            guard.say_once((self, "failed"), line)

    def _append(self, text: bytes) -> None:
        if self._descriptor >= 0 and not os.fstat(self._descriptor).st_nlink:
            # Somebody has removed it.
            self.close()
        if self._descriptor < 0:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = open_above(self._folder / f"{os.getpid()}.json", _APPEND, 0o666)
            self._torn = False
        left = b"\n" + text if self._torn else text
        while left:
            written = os.write(self._descriptor, left)
            left = left[written:]
            self._torn = bool(left)


def _lines(step: MetricStep) -> Iterator[str]:
    stamp, now = step.stamp, time.time()
    for name, (value, wall_time) in step.numbers.items():
        if not math.isfinite(value):
            line = f"{name} is {value} in step {stamp.mode_step}: SageMaker's metrics are finite numbers"
            guard.say_once(("metric", name, "finite"), line)
        elif not now - _OLDEST <= wall_time <= now + _NEWEST:
            line = f"{name} has a timestamp that SageMaker's metrics do not take: two weeks ago at most, not to come"
            guard.say_once(("metric", name, "time"), line)
        else:
            record = {
                "MetricName": f"{name}_{stamp.mode.name}",
                "Value": value,
                "Timestamp": wall_time,
                "IterationNumber": stamp.mode_step,
            }
            yield f"{json.dumps(record)}\n"
