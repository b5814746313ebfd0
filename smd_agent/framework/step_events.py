"""Events of a step that is saved, and probes: parts of what is saved, each of which looks at the events that it names.

A framework emits events, with its own tensors, models and optimizers in them. A probe is one fact or one kind of
tensor. It fails alone: its methods stand in its failure domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from smd_agent.core.domains import Domain


class NewParameters(NamedTuple):
    """Parameters of a model that have become known.

    title: of the model in the run.
    model: what tracks it.
    pairs: names under which parameters are saved, and the parameters.
    """

    title: str
    model: Any
    pairs: Sequence[tuple[str, Any]]


class ModelCall(NamedTuple):
    """A model is about to be called.

    name: of the call in the run.
    model: that is called; None if it is gone.
    inputs: positional arguments and those by keyword, or what the framework has made of them.
    """

    name: str
    model: Any
    inputs: Any


class ModelReturn(NamedTuple):
    """A model has returned from the call of this name."""

    name: str


class LayerCall(NamedTuple):
    """A layer of a model is about to be called, or a model that may be one itself.

    name: of the layer in the run.
    layer: the layer.
    args, kwargs: its arguments.
    """

    name: str
    layer: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class LayerReturn(NamedTuple):
    """A layer of a model has returned, or the model itself.

    layer: the layer.
    inputs: positional arguments and those by keyword.
    outputs: what it has returned.
    """

    layer: Any
    inputs: Any
    outputs: Any


class LossCall(NamedTuple):
    """A loss of the framework has been computed, or is about to be.

    loss: name of its function, or the layer that computes it.
    args, kwargs: its arguments.
    value: what it has returned; None if it has not been computed yet.
    """

    loss: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Any = None


class BeforeBackward(NamedTuple):
    """A backward pass is about to begin, from these tensors."""

    tensors: Any


class AfterBackward(NamedTuple):
    """A backward pass has ended."""


class BeforeOptimizer(NamedTuple):
    """An optimizer is about to use gradients."""

    optimizer: Any


class BeforeUpdate(NamedTuple):
    """An optimizer is about to update its parameters."""

    optimizer: Any


class AfterUpdate(NamedTuple):
    """An optimizer has updated its parameters."""

    optimizer: Any


class StepEnd(NamedTuple):
    """The step ends, and values are still taken."""


Method = TypeVar("Method", bound=Callable[..., Any])
_MARK = "events_of_probe"


def on(*events: type) -> Callable[[Method], Method]:
    """Have a method of a probe called with each event of these types."""

    def mark(method: Method) -> Method:
        setattr(method, _MARK, events)
        return method

    return mark


class Probe:
    """A part of what is saved of a step.

    A subclass is made with the failure domain of its methods and with words for what they do:
    ``class Digests(Probe, domain=DIGESTS, doing="looking at a model's inputs")``.

    Attributes:
        events: names of the methods, by the type of event that they look at.
        wanted: whether the step saves it; if not, it gets no events.
    """

    events: ClassVar[Mapping[type, str]] = {}
    wanted = True

    def __init_subclass__(cls, domain: Domain | None = None, doing: str = "") -> None:
        super().__init_subclass__()
        found = {**cls.events}
        for name, method in [*vars(cls).items()]:
            events = getattr(method, _MARK, ())
            if events and domain is not None:
                setattr(cls, name, domain.fence(doing)(method))
            found.update(dict.fromkeys(events, name))
        cls.events = found


class Probes:
    """The probes of one step.

    Args:
        probes: in the order in which they get an event.
    """

    def __init__(self, probes: Iterable[Probe]) -> None:
        self._methods: dict[type, list[Callable[[Any], object]]] = {}
        for probe in probes:
            if probe.wanted:
                for event, name in probe.events.items():
                    self._methods.setdefault(event, []).append(getattr(probe, name))

    def emit(self, event: object) -> None:
        """Hand an event to the probes that look at it."""
        for method in self._methods.get(type(event), ()):
            method(event)
