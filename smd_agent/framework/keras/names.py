"""Names of Keras's layers and variables in a run, whatever Keras computes with."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from smd_agent.framework.keras.plain_access import attribute, flat_layers, have_own_lists, own_variables
from smd_agent.framework.keras.types import Layer, Model, Optimizer, Variable
from smd_agent.framework.weak_references import Reference, WeakIdentityMap


class VariableNames:
    """Gives each variable a name of its own: of several that are called alike, the later ones get ``_1``, ``_2`` ...

    Args:
        plain_name: the name that the user knows a variable by; several may share it.

    Variables are held weakly and by identity: they define neither equality nor a hash. The name of one that is gone can
    be given again, so a model built anew in a loop keeps its names.
    """

    def __init__(self, plain_name: Callable[[Any], str]) -> None:
        self._plain_name = plain_name
        self._by_id: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._taken: set[str] = set()

    def of(self, variable: object) -> str:
        """The variable's name in this run."""
        key = id(variable)
        known = self._by_id.get(key)
        if known is not None and known[0]() is variable:
            return known[1]
        name = base = self._plain_name(variable)
        number = 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self._by_id[key] = (weakref.ref(variable, lambda _: self._forget(key, name)), name)
        return name

    def _forget(self, key: int, name: str) -> None:
        known = self._by_id.get(key)
        if known is not None and known[0]() is None:
            del self._by_id[key]
        self._taken.discard(name)


class LayerNames:
    """Gives every layer a name; layers of two models may be called alike."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._taken: dict[str, weakref.ref[Any]] = {}

    def of(self, layer: Layer, model: Layer | None = None) -> str:
        """The layer's name; with its model's in front, then with a number, where another one has it already."""
        known = self._by_id.get(id(layer))
        if known is not None and known[0]() is layer:
            return known[1]
        name = str(attribute(layer, "name"))
        if self._is_taken(name) and model is not None and model is not layer:
            name = f"{attribute(model, 'name')}/{name}"
        base, number = name, 0
        while self._is_taken(name):
            number += 1
            name = f"{base}_{number}"
        reference = Reference(layer)
        self._by_id[id(layer)] = (reference, name)
        self._taken[name] = reference
        return name

    def _is_taken(self, name: str) -> bool:
        holder = self._taken.get(name)
        return holder is not None and holder() is not None


class Names:
    """The names of all layers and variables of the process.

    Variables have one name each, in weights and gradients alike: of several called alike, the later ones get ``_1``.
    """

    def __init__(self, plain_name: Callable[[Any], str]) -> None:
        self.layers = LayerNames()
        self._variables = VariableNames(plain_name)
        self._weights: WeakIdentityMap[object, str] = WeakIdentityMap()
        self._told: WeakIdentityMap[object, str] = WeakIdentityMap()

    def weight(self, layer: Layer, variable: Variable, model: Model) -> str:
        """The name that a layer's variable is stored under; as ``known_weight`` was told, if it was."""
        name = self._told.get(variable)
        return name or self._weights.set(
            variable, f"{self.layers.of(layer, model)}/weights/{self._variables.of(variable)}:0"
        )

    def known_weight(self, variable: object, name: str) -> str:
        """The name of a variable's value up to now; one that has none is from now on stored as told."""
        return self._weights.get(variable) or self._told.set(variable, name)

    def variable(self, variable: object) -> str:
        """The variable's name in this run."""
        return self._variables.of(variable)

    def gradient(self, variable: object) -> str:
        """The name that a variable's gradient is stored under."""
        return f"gradients/{self._variables.of(variable)}Grad"

    def plain(self, variable: object) -> str:
        """The name of a variable that belongs to no layer."""
        return f"{self._variables.of(variable)}:0"


def leaf_variables(model: Layer) -> Iterator[tuple[Layer, Variable]]:
    """The model's variables with the innermost layer that owns each; every variable once."""
    seen: set[int] = set()
    layers: list[Layer] = flat_layers(model)
    variables_of_layer = own_variables if have_own_lists(layers) else _weights_of
    for layer in reversed(layers):
        for variable in variables_of_layer(layer):
            if id(variable) not in seen:
                seen.add(id(variable))
                yield layer, variable


def _weights_of(layer: Layer) -> list[Variable]:
    # With those of the layers inside, which come later in the order and are seen by now.
    try:
        return list(attribute(layer, "weights", ()))
    except ValueError:
        # A model that is not built yet has none.
        return []


def variables_of(optimizer: Optimizer) -> list[Any]:
    """An optimizer's variables: a property of newer ones, a method of Keras 2's."""
    found = attribute(optimizer, "variables", ())
    return list(found() if callable(found) else found)


def numbered(base: str, number: int) -> str:
    """The first is called by the base alone."""
    return base if number == 0 else f"{base}_{number}"


def definer(cls: type, name: str) -> type:
    """The class among a class and its bases that defines a method.

    Raises:
        LookupError: none does.
    """
    for base in cls.__mro__:
        if name in vars(base):
            return base
    raise LookupError(f"{cls.__name__} has no {name}")
