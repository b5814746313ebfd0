"""Places of step functions: beside their models, which the program copies, pickles and compares as without us.

Keras runs what the attribute ``train_function`` of a model gives, and its like. The class that makes these functions
gets a descriptor for each, which gives the step function of what stands in the model. The step function is kept by the
function whose steps it counts: that knows its model, so whatever else kept it would keep the model too.
"""

from __future__ import annotations

import weakref
from types import FunctionType
from typing import Any

from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.keras.plain_access import attribute, own_attributes
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.interpreter.hidden_frames import unseen

_KEY = "_smd_agent_"


class Placed:
    """Base of the step functions.

    function: the model's own, whose steps are counted.
    """

    function: Call
    _model: weakref.ref[Model]


class _Kept(WeakIdentityMap[Model, "Placed | None"]):
    """The step functions that count a function's steps in one attribute, by their models."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        # A copied function has none.
        return (type(None), ())


class _Place:
    """The descriptor. It keeps in the model what is set, and no step function.

    Args:
        slot: the attribute's name.
    """

    __slots__ = ("_slot",)

    def __init__(self, slot: str) -> None:
        self._slot = slot

    @unseen
    def __get__(self, model: Model | None, kind: type) -> Any:
        own = {} if model is None else object.__getattribute__(model, "__dict__")
        if self._slot not in own:
            raise self._missing(model, kind)
        function = own[self._slot]
        step = _step_of(function, self._slot, model)
        return function if step is None else step

    @unseen
    def __set__(self, model: Model, value: Any) -> None:
        own = object.__getattribute__(model, "__dict__")
        before, own[self._slot] = own.get(self._slot), value
        _settle(model, self._slot, before, value)

    @unseen
    def __delete__(self, model: Model) -> None:
        if object.__getattribute__(model, "__dict__").pop(self._slot, self) is self:
            raise self._missing(model, type(model))

    def _missing(self, model: Model | None, kind: type) -> AttributeError:
        has = f"type object {kind.__name__!r} has" if model is None else f"{kind.__name__!r} object has"
        owner = kind if model is None else model
        return AttributeError(f"{has} no attribute {self._slot!r}", name=self._slot, obj=owner)


def install(trainer: type, slot: str) -> None:
    """Let the models of a class have step functions in an attribute of theirs."""
    if slot not in vars(trainer):
        type.__setattr__(trainer, slot, _Place(slot))


def standing(model: Model, slot: str) -> Any:
    """The function, or step function, that a model runs by an attribute; None where it has none."""
    place, found = in_class(type(model), slot), None
    if not is_a(place, _Place):
        found = attribute(model, slot)
    elif slot in own_attributes(model):
        found = place.__get__(model, type(model))
    return found


def put(model: Model, slot: str, step: Placed) -> None:
    """Have a model run a step function in the place of what stands in its attribute."""
    if not is_a(in_class(type(model), slot), _Place):
        # The class has an attribute of its own there.
        object.__setattr__(model, slot, step)
    elif not _keep(model, slot, step):
        own_attributes(model)[slot] = step


def _keep(model: Model, slot: str, step: Placed) -> bool:
    """Have a function keep the step function of a model; only those of Python's or TensorFlow's do."""
    function = step.function
    kind = type(function)
    if kind is not FunctionType and not kind.__module__.startswith("tensorflow."):
        return False
    kept = _kept_by(function, slot)
    if kept is None:
        kept = own_attributes(function)[_KEY + slot] = _Kept()
    kept.set(model, step)
    return True


def _kept_by(function: object, slot: str) -> _Kept | None:
    kept: _Kept | None = own_attributes(function).get(_KEY + slot)
    return kept if is_a(kept, _Kept) else None


@STEPS.fence("placing a step function", again=True)
def _settle(model: Model, slot: str, before: object, value: Any) -> None:
    """Keep the step function that a model has been given beside it, and leave the one that it had."""
    kept = _kept_by(before, slot)
    if kept is not None:
        # Else the two would live until the garbage collector runs.
        kept.set(model, None)
    if is_a(value, Placed) and value._model() is model and _keep(model, slot, value):
        own_attributes(model)[slot] = value.function


@STEPS.fence("looking for a step function", again=True)
def _step_of(function: object, slot: str, model: Model | None) -> Placed | None:
    kept = _kept_by(function, slot)
    step = None if kept is None or model is None else kept.get(model)
    # Who wraps a function takes over what it keeps.
    return step if step is not None and step.function is function else None
