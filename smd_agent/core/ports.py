"""The small interfaces of a hook: by which captures talk to it, and all that it knows of where its run goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.channel_axes import ChannelAxes
from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.failure_record import Failure
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from smd_agent.core.distribution import Distribution
    from smd_agent.core.requests import Requests
    from smd_agent.core.save_plan import SavePlan


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


class SeriesSink(Protocol):
    """Takes rows of the series, see ``core.series``; ``after`` is the step that this start of the run goes on after."""

    after: int

    @property
    def takes_rows(self) -> bool:
        """True if rows are stored."""

    def add(
        self, table: str, step: int, mode: ModeKeys, mode_step: int, names: tuple[str, ...], values: Sequence[float]
    ) -> None:
        """Take a row, of a saved step or another."""


class Place(NamedTuple):
    """The place of a worker among those of a run: its number, how many there are, and how many of them write."""

    rank: int
    size: int
    writers: int


class RunSink(Protocol):
    """Takes the steps of one worker."""

    dry_run: bool

    @property
    def series(self) -> SeriesSink:
        """The one that takes rows of the series."""

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
        """True if ``start`` has succeeded."""

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

    def write_bundle(self, folder: str, tensors: Sequence[bytes | memoryview], text: str) -> None:
        """Store what a step was given, in the background.

        Args:
            folder: of the two files, below the run's.
            tensors: the pieces of the file of tensors.
            text: of the file that names them.
        """

    def write_about(self, environment: Mapping[str, Mapping[str, str]], took: tuple[float, float] | None) -> None:
        """Note where this worker runs, and what saving took.

        Args:
            environment: facts as text, by group and name.
            took: seconds of the program's time that were the agent's, and all seconds; None where it is not over.
        """

    def write_failures(self, failures: Sequence[Failure]) -> None:
        """Note what has failed of the agent's."""

    def listen(self, requests: Requests | None, place: Place) -> None:
        """Look for requests to this worker from now on; called again, nothing happens.

        With None, look no more, once what has been answered is written.
        """

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


@dataclass(frozen=True)
class HeldStep:
    """A step that is neither current nor on its way to the disk, and what it has saved."""

    sink: StepSink
    step: int
    due: int
    saving: bool


@dataclass
class StepState:
    """The knowledge of the current step.

    Attributes:
        plan: what the step goes by; None before there is one.
        due: the collections that it saves, as that plan numbers them.
        sink: takes its values; None as long as it has none.
        number: of the last step that had values.
        resumed: number of a step that goes on after later ones have ended; -1 if this one is none.
        closing: what captures the step is being closed.
    """

    plan: SavePlan | None = None
    due: int = 0
    sink: StepSink | None = None
    number: int = -1
    resumed: int = -1
    closing: bool = False


class StepAside(NamedTuple):
    """A training step that waits while an evaluation stands between; see ``RunPosition``."""

    step: int
    clock: ModeClock
    saving: bool
    state: StepState
    capture: OpenCapture | None
    late: object


class Deferred:
    """A value that is computed only if it is saved, such as a gradient that is divided by a loss scale."""

    __slots__ = ()

    def read(self) -> Any:
        """The value, a tensor of the framework or an array."""
        raise NotImplementedError


class StepWriter(Protocol):
    """Takes the values of the step that is open."""

    @property
    def position(self) -> RunPosition:
        """The position of the run."""

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""

    axes: ChannelAxes
    """Of the channels of layers' outputs; who captures these says where they are."""

    def wants(self, name: str) -> bool:
        """True if the current step saves a tensor of this name."""

    def collections_due(self) -> set[str]:
        """Names of the collections that the current step saves."""

    def shares_due(self) -> bool:
        """True if the current step saves shares of the channels of some tensors."""

    def ever_saves(self, collection: str) -> bool:
        """True if a collection is saved at some step."""

    def ever_wanted(self, names: frozenset[str]) -> frozenset[str]:
        """Those of several names that are in a collection that is saved, at whatever step."""

    def clock_for(self, mode: ModeKeys) -> ModeClock:
        """The counter of the steps that are of this mode by themselves."""

    def next_step_wants(self, clock: ModeClock) -> Callable[[str], bool]:
        """Tells of a tensor's name whether the clock's next step saves it; nothing is begun."""

    def save_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save what the current step wants of these tensors; values that are not wanted are not touched."""

    def replace_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save these tensors in place of those of the same names that the step has."""

    def save_tensor_now(self, name: str, value: Any) -> None:
        """Save one tensor, if the current step wants it."""

    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, whatever the collection's regexes say."""

    def cannot_save(self, collections: Sequence[str], reason: str) -> None:
        """Say once, in one line, why collections, which the user asked for, stay without a tensor."""

    def cannot_have(self, collections: Sequence[str], reason: str) -> None:
        """Note in the run why collections can have no tensor in this training, whether or not they are asked for."""


class OpenCapture(Protocol):
    """The capture of the step that is open: patches, hooks, and values that are saved when the step ends."""

    def close(self) -> None:
        """The step ends: save what is left and remove everything that was installed."""

    def drop(self) -> None:
        """Nothing more is saved: remove everything that was installed."""


class LateValues(Protocol):
    """Takes values that are on their way, such as those on an accelerator, and the steps that wait for them."""

    @property
    def waiting(self) -> bool:
        """True if a step that has ended is not on its way to the disk."""

    def ask(self, names: Sequence[str], values: Sequence[Any]) -> tuple[Sequence[str], Sequence[Any]]:
        """Take what comes later of these tensors of the open step; the names and values of the rest are returned."""

    def end(self, held: HeldStep) -> None:
        """Take a step that has ended; it is committed once all its values, and those of earlier steps, are in."""

    def bring(self, sink: StepSink) -> None:
        """Wait for what was asked for in the open step, and write it into that."""

    def forget(self, names: set[str]) -> None:
        """Have tensors and scalars of these names, asked for in the open step, not saved: others follow."""

    def put_aside(self) -> object:
        """Give away what was asked for in the open step, which goes on later."""

    def go_on(self, asked: object) -> None:
        """Take back what ``put_aside`` gave away: the step goes on."""

    def settle(self, wait: bool = False) -> None:
        """Commit the steps whose values are in; if asked to, wait for all."""

    def drop(self, aside: object = None) -> None:
        """Forget everything, and what ``put_aside`` gave away."""
