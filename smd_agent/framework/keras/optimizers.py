"""Keras's optimizers, as the facts of a step look at them: their settings, and the variables that they are given."""

from __future__ import annotations

import weakref
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from smd_agent.framework.keras.plain_access import attribute, is_of_keras, own_attributes
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.framework.weak_references import Reference

# What the settings are called in the run, and by Keras.
_SETTINGS = {
    "weight_decay": "weight_decay",
    "momentum": "momentum",
    "beta_1": "beta_1",
    "beta_2": "beta_2",
    "eps": "epsilon",
}
# Of Keras 3, dynamic and fixed, of Keras 2, and of Keras 3 before the optimizer is built.
_SCALES = ("dynamic_scale", "loss_scale_factor", "loss_scale", "initial_scale")

LEARNING_RATE = "lr"
LOSS_SCALE = "loss_scale"
SKIPPED = "skipped"


def inner_of(optimizer: Any) -> Any | None:
    """The optimizer inside of one that scales losses; None where there is none."""
    return attribute(optimizer, "inner_optimizer")


def with_inner(optimizers: Iterable[Any]) -> list[Any]:
    """Optimizers and those inside of them, each once."""
    found: dict[int, Any] = {}
    for optimizer in optimizers:
        found.setdefault(id(optimizer), optimizer)
        inner = inner_of(optimizer)
        if inner is not None:
            found.setdefault(id(inner), inner)
    return [*found.values()]


def loss_scale_of(optimizer: Any) -> float | None:
    """The number by which an optimizer multiplies losses now; None if it scales none."""
    for name in _SCALES:
        scale = number_of(attribute(optimizer, name))
        # A new variable is empty until TensorFlow runs what gives it its value.
        if scale is not None and np.size(scale) == 1:
            return float(scale)
    return None


def skipped(optimizer: Any, scale: float | None) -> dict[str, float]:
    """``skipped``: 1 if an optimizer left out its update as gradients overflowed, else 0; nothing where nobody knows.

    It makes its scale smaller then, and only then; in Keras 2 no smaller than 1.

    Args:
        optimizer: has had its turn.
        scale: by which it multiplied the loss before.
    """
    after = None if scale is None or inner_of(optimizer) is None else loss_scale_of(optimizer)
    if scale is None or after is None or after == scale <= 1:
        return {}
    return {SKIPPED: float(after < scale)}


def number_of(value: Any) -> Any:
    """The value of a variable, a tensor or a number, as NumPy or Python has it."""
    inside = attribute(value, "value")
    if inside is not None and not callable(inside):
        # Keras 3's own, around one of what it computes with.
        value = inside
    if in_class(type(value), "detach") is not None:
        # A tensor of PyTorch's, which may be on an accelerator.
        return value.item()
    return value.numpy() if _has_values(value) else value


def settings_of(optimizer: Any) -> dict[str, Any]:
    """The settings of an optimizer that has just updated, by their names in the run.

    One that does nothing but scale losses for another has none. The learning rate is missing where only code of the
    program's knows it.
    """
    if inner_of(optimizer) is not None:
        return {}
    found = {name: attribute(optimizer, known) for name, known in _SETTINGS.items()}
    found = {LEARNING_RATE: _learning_rate(optimizer), **found}
    numbers = {name: number_of(value) for name, value in found.items() if not is_a(value, (bool, str))}
    return {name: value for name, value in numbers.items() if value is not None and np.ndim(value) == 0}


def _learning_rate(optimizer: Any) -> Any | None:
    """As the last update used it."""
    source = attribute(optimizer, "_learning_rate")
    if source is None:
        # Keras 2's older optimizers, which make it smaller by a decay of their own.
        if attribute(optimizer, "_initial_decay", 0):
            return None
        source = attribute(optimizer, "_hyper", {}).get("learning_rate")
    if source is None or _has_values(source) or not callable(source):
        return source
    current = attribute(optimizer, "_current_learning_rate")
    if current is not None:
        return current
    if _is_of_keras(source):
        return source(max(int(number_of(attribute(optimizer, "iterations"))) - 1, 0))
    return None


def kept_rate(optimizer: Any) -> Any:
    """The number or the variable that the last update of an optimizer has used; None if it was computed then."""
    own = own_attributes(optimizer)
    rate = own.get("_learning_rate")
    if rate is None:
        # Keras 2's older optimizers, which make it smaller by a decay of their own.
        return None if own.get("_initial_decay") else own.get("_hyper", {}).get("learning_rate")
    # Keras 2 keeps what a schedule has given.
    return own.get("_current_learning_rate") if callable(rate) else rate


def has_own_schedule(optimizer: Any) -> bool:
    """True if code of the program's makes the learning rate: it might print, or count its calls."""
    source = attribute(optimizer, "_learning_rate")
    if source is None:
        source = attribute(optimizer, "_hyper", {}).get("learning_rate")
    return callable(source) and not _has_values(source) and not _is_of_keras(source)


def _has_values(value: object) -> bool:
    return in_class(type(value), "numpy") is not None


def _is_of_keras(source: Any) -> bool:
    return is_of_keras(type(source))


class _Given(NamedTuple):
    """A variable that an optimizer was given."""

    variable: weakref.ref[Any]
    optimizer: weakref.ref[Any]
    has_gradient: bool


class GivenVariables:
    """The variables that optimizers were given to update, by identity: of one step, or of functions while traced."""

    def __init__(self) -> None:
        self._by_id: dict[int, _Given] = {}
        self._optimizers: dict[int, weakref.ref[Any]] = {}

    def add(self, optimizer: Any, gradients: Iterable[object], variables: Iterable[Any]) -> None:
        """An optimizer is given variables, each with its gradient or None."""
        inner = inner_of(optimizer)
        self._optimizers[id(optimizer)] = Reference(optimizer)
        reference = Reference(optimizer if inner is None else inner)
        for gradient, variable in zip(gradients, variables, strict=False):
            known = self._living(variable)
            # One that is given a variable without a gradient leaves it alone.
            if known is None or gradient is not None or not known.has_gradient:
                self._by_id[id(variable)] = _Given(Reference(variable), reference, gradient is not None)

    def update(self, other: GivenVariables) -> None:
        """Know what another one knows, too."""
        self._by_id.update(other._by_id)
        self._optimizers.update(other._optimizers)

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def __contains__(self, variable: object) -> bool:
        return self._living(variable) is not None

    def has_gradient(self, variable: object) -> bool:
        """True if a variable was given with a gradient."""
        known = self._living(variable)
        return known is not None and known.has_gradient

    def variables(self) -> list[Any]:
        """Those that are alive."""
        found = (given.variable() for given in self._by_id.values())
        return [variable for variable in found if variable is not None]

    def by_optimizer(self) -> dict[str, list[Any]]:
        """The variables by the title of the optimizer that was given them."""
        found: dict[str, list[Any]] = {}
        for given in self._by_id.values():
            optimizer, variable = given.optimizer(), given.variable()
            if optimizer is not None and variable is not None:
                found.setdefault(title_of(optimizer), []).append(variable)
        return found

    def optimizers(self) -> Iterator[Any]:
        """Those that were given variables."""
        for reference in self._optimizers.values():
            optimizer = reference()
            if optimizer is not None:
                yield optimizer

    def _living(self, variable: object) -> _Given | None:
        known = self._by_id.get(id(variable))
        return known if known is not None and known.variable() is variable else None


class Knowledge:
    """The facts of variables when a step is over, as ``parameter_facts`` asks for them.

    Args:
        now: the variables that were given to optimizers in this step.
        ever: in all steps.
        trainable: the variables that can be trained.
        differentiated: ids of variables that have a gradient, whatever optimizers were given.
    """

    def __init__(
        self,
        now: GivenVariables,
        ever: GivenVariables,
        trainable: Iterable[Any],
        differentiated: Container[int] = (),
    ) -> None:
        self._now = now
        self._ever = ever
        self._trainable = {id(variable) for variable in trainable}
        self._differentiated = differentiated

    def groups_of(self, optimizer: GivenVariables) -> Mapping[str, Iterable[Any]]:
        """The variables that were given to optimizers, by title."""
        return optimizer.by_optimizer()

    def can_be_trained(self, parameter: Any) -> bool:
        """True if it is not frozen."""
        return id(parameter) in self._trainable

    def has_gradient(self, parameter: Any) -> bool:
        """True if there is a gradient for it."""
        return id(parameter) in self._differentiated or self._now.has_gradient(parameter)

    def was_given(self, parameter: Any) -> bool:
        """True if any optimizer was given it."""
        return parameter in self._ever
