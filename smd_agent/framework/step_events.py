"""Events of a step that is saved, and probes: parts of what is saved, each of which looks at the events that it names.

A framework emits events, with its own tensors, models and optimizers in them. A probe is one fact or one kind of
tensor. It fails alone: its methods stand in its failure domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from smd_agent.core.failure_domains import Domain


class NewModel(NamedTuple):
    """A model has become known, with parameters that are new or without; ``model``: what tracks it."""

    model: Any


class NewParameters(NamedTuple):
    """Parameters of a model that have become known.

    title: of the model in the run.
    model: what tracks it.
    pairs: names under which parameters are saved, and the parameters.
    """

    title: str
    model: Any
    pairs: Sequence[tuple[str, Any]]


class Initialized(NamedTuple):
    """A parameter has got its values, after the step has begun."""

    parameter: Any


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
    """A model has returned.

    name: of the call in the run; None of one that has no name of its own, as that of a part that has all parameters.
    title: of the model.
    model: that was called; None if it is gone.
    outputs: what it has returned.
    """

    name: str | None
    title: str
    model: Any
    outputs: Any


class LayerCall(NamedTuple):
    """A layer is about to be called: one of a model, or one that computes a loss.

    name: of the layer in the run.
    layer: the layer; None where another one runs in its place.
    args, kwargs: its arguments.
    """

    name: str
    layer: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class LayerReturn(NamedTuple):
    """A layer of a model has returned, or the model itself.

    name: of the layer in the run.
    layer: the layer; None where another one has run in its place.
    inputs: positional arguments and those by keyword; None where nobody needs them.
    outputs: what it has returned.
    """

    name: str
    layer: Any
    inputs: Any
    outputs: Any


class OutsideReturn(NamedTuple):
    """A layer of no model that is known has returned; perhaps it computes a loss.

    layer: the layer.
    outputs: what it has returned.
    """

    layer: Any
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


class LossReturn(NamedTuple):
    """A loss has been computed, perhaps of a step that waits for an evaluation to end.

    loss: what has computed it: the layer, or the call of a function.
    value: it.
    """

    loss: Any
    value: Any


class ValueGiven(NamedTuple):
    """The program gives a value by hand, under a name of its own."""

    name: str
    value: Any


class BeforeBackward(NamedTuple):
    """A backward pass is about to begin, from these tensors."""

    tensors: Any


class AfterBackward(NamedTuple):
    """A backward pass has ended.

    reached: names and parameters that it has given a gradient, where the framework tells.
    """

    reached: Sequence[tuple[str, Any]] = ()


class GradientsReturned(NamedTuple):
    """Gradients have been computed by a function that returns them.

    outputs: what was differentiated.
    inputs: by what.
    gradients: of each input.
    """

    outputs: Any
    inputs: Any
    gradients: Any


class BeforeUnscaling(NamedTuple):
    """The gradients of an optimizer are about to be divided by the scale of the loss."""

    optimizer: Any
    scale: float


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


class RoundEnd(NamedTuple):
    """A boosting round has ended.

    model: the library's model, or what it has in its place in a cross-validation.
    log: what the library tells a callback of the round's metrics.
    """

    model: Any
    log: Any


Method = TypeVar("Method", bound=Callable[..., Any])
_MARK = "events_of_probe"


def on(*events: type, doing: str = "") -> Callable[[Method], Method]:
    """Have a method of a probe called with each event of these types; ``doing``: its own words for what it does."""

    def mark(method: Method) -> Method:
        setattr(method, _MARK, (events, doing))
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
            events, own = getattr(method, _MARK, ((), ""))
            if events and domain is not None:
                setattr(cls, name, domain.fence(own or doing)(method))
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
