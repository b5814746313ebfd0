"""The small interfaces by which captures talk to a hook, so that none of them needs to know a hook's class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from smd_agent.core.channels import ChannelAxes
from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.modes import ModeKeys
from smd_agent.core.sink import StepSink


@dataclass(frozen=True)
class HeldStep:
    """What a step has saved while it is neither current nor on its way to the disk."""

    sink: StepSink
    step: int
    due: int
    saving: bool


class StepAside(NamedTuple):
    """A training step that waits while an evaluation stands between; see ``HeldStep`` and ``RunPosition``."""

    step: int
    clock: ModeClock
    saving: bool
    sink: StepSink | None
    open_step: int
    due: int
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
        """Where the run stands."""

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""

    axes: ChannelAxes
    """Of the channels of layers' outputs; who captures these says where they are."""

    def wants(self, name: str) -> bool:
        """Whether the current step saves a tensor of this name."""

    def collections_due(self) -> set[str]:
        """Names of the collections that the current step saves."""

    def shares_due(self) -> bool:
        """Whether the current step saves shares of the channels of some tensors."""

    def ever_saves(self, collection: str) -> bool:
        """Whether a collection is saved at some step."""

    def ever_wanted(self, names: frozenset[str]) -> frozenset[str]:
        """Those of several names that are in a collection that is saved, at whatever step."""

    def clock_for(self, mode: ModeKeys) -> ModeClock:
        """What counts the steps that are of this mode by themselves."""

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
    """What captures the step that is open: patches, hooks, and values that are saved when the step ends."""

    def close(self) -> None:
        """The step ends: save what is left and remove everything that was installed."""

    def drop(self) -> None:
        """Nothing more is saved: remove everything that was installed."""


class LateValues(Protocol):
    """Takes values that are on their way, such as those on an accelerator, and the steps that wait for them."""

    @property
    def waiting(self) -> bool:
        """Whether a step that has ended is not on its way to the disk."""

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
