"""Interfaces of storage: all that a hook knows of where its run goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.distribution import Distribution
from smd_agent.core.failure import Failure
from smd_agent.core.modes import ModeKeys


class StepSink(Protocol):
    """Takes the values of one step. Each method copies what it is given."""

    def add(
        self,
        name: str,
        array: npt.NDArray[Any],
        original_dtype: str | None = None,
        wall_time: float | None = None,
    ) -> None:
        """Take a tensor's values; ``wall_time`` (seconds since the epoch) where it is not the step's."""

    def add_text(self, name: str, values: Sequence[str]) -> None:
        """Take a 1-D array of text."""

    def add_scalars(self, names: tuple[str, ...], values: npt.NDArray[np.float64]) -> None:
        """Take one float64 for each name."""

    def add_shape(self, name: str, original_name: str, shape: tuple[int, ...], dtype: str | None = None) -> None:
        """Take a tensor's shape, and the name of the dtype it has."""

    def add_distribution(self, name: str, distribution: Distribution) -> None:
        """Take how the elements of a tensor lie that is not taken whole."""

    def drop(self, names: set[str]) -> None:
        """Forget tensors and scalars of these names: others of the same names follow."""


class RunSink(Protocol):
    """Takes the steps of one worker."""

    dry_run: bool

    @property
    def location(self) -> str:
        """The run's folder or address, for messages."""

    @property
    def folder(self) -> str | None:
        """The folder on this machine that has all that was saved; None if there is none any more."""

    @property
    def worker(self) -> str:
        """The name that ``start`` was called with; empty before."""

    @property
    def started(self) -> bool:
        """Whether ``start`` has succeeded."""

    @property
    def relocated_because(self) -> str | None:
        """The reason why ``location`` is not the place that was asked for; None if it is."""

    def start(self, worker: str, alone: bool) -> str | None:
        """Make ready for this worker; the reason why it cannot write there, or None."""

    def leave(self) -> None:
        """Store everything handed over so far, and be this worker no longer."""

    def begin_anew(self) -> None:
        """Forget everything that has been handed over, in a process that a fork has made."""

    def begin_step(self, step: int, mode: ModeKeys, mode_step: int) -> StepSink:
        """Open a step."""

    def commit(self, step: Any, steps_among: Callable[[ModeKeys, int], int]) -> None:
        """Take a filled step over; ``steps_among`` tells how many of the first steps of a mode are saved."""

    def publish(self, step: Any) -> None:
        """Store what an open step has so far; it may get more until it is committed."""

    def write_collections(self, text: str) -> None:
        """Take the text of the collections file."""

    def write_about(self, environment: Mapping[str, Mapping[str, str]], took: tuple[float, float] | None) -> None:
        """Note where this worker runs, and what saving took.

        Args:
            environment: facts as text, by group and name.
            took: seconds of the program's time that were the agent's, and all seconds; None where it is not over.
        """

    def write_failures(self, failures: Sequence[Failure]) -> None:
        """Note what has failed of the agent's."""

    def flush(self, last_look: bool = True) -> bool:
        """Store everything handed over so far; False if that is not possible.

        Without ``last_look`` what has been waited for in vain is not waited for again until it has moved.
        """

    def close(self, end_marker: bool) -> None:
        """Store everything and, if asked to, mark the run as ended."""

    def clear_away(self) -> None:
        """Leave nothing that the run has no use for any more; the last call."""

    def summary(self, more: str = "") -> str:
        """One line on what has been stored; ``more`` follows its size."""
