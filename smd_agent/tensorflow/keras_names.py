"""What Keras's layers and variables are called in a run."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from smd_agent.tensorflow.naming import VariableNames


class LayerNames:
    """Gives every layer a name; layers of two models may be called alike."""

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._taken: dict[str, weakref.ref[Any]] = {}

    def of(self, layer: Any, model: Any = None) -> str:
        """The layer's name; with its model's in front, then with a number, where another one has it already."""
        known = self._by_id.get(id(layer))
        if known is not None and known[0]() is layer:
            return known[1]
        name = str(layer.name)
        if self._is_taken(name) and model is not None and model is not layer:
            name = f"{model.name}/{name}"
        base, number = name, 0
        while self._is_taken(name):
            number += 1
            name = f"{base}_{number}"
        reference = weakref.ref(layer)
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

    def __init__(self) -> None:
        self.layers = LayerNames()
        self._variables = VariableNames()

    def weight(self, layer: Any, variable: Any, model: Any) -> str:
        """Where the value of a layer's variable is stored."""
        return f"{self.layers.of(layer, model)}/weights/{self._variables.of(variable)}:0"

    def gradient(self, variable: Any) -> str:
        """Where a variable's gradient is stored."""
        return f"gradients/{self._variables.of(variable)}Grad"

    def plain(self, variable: Any) -> str:
        """Where a variable that belongs to no layer is stored."""
        return f"{self._variables.of(variable)}:0"


def leaf_variables(model: Any) -> Iterator[tuple[Any, Any]]:
    """The model's variables with the innermost layer that owns each; every variable once."""
    seen: set[int] = set()
    layers = list(model._flatten_layers()) if hasattr(model, "_flatten_layers") else [model]
    for layer in reversed(layers):
        for variable in _weights_of(layer):
            if id(variable) not in seen:
                seen.add(id(variable))
                yield layer, variable


def _weights_of(layer: Any) -> list[Any]:
    # With those of the layers inside, which come later in the order and are seen by now.
    try:
        return list(layer.weights)
    except (ValueError, AttributeError):
        # A model that is not built yet has none.
        return []


def variables_of(optimizer: Any) -> list[Any]:
    """An optimizer's variables: a property of newer ones, a method of Keras 2's."""
    found = getattr(optimizer, "variables", ())
    return list(found() if callable(found) else found)


def numbered(base: str, number: int) -> str:
    """The first is called by the base alone."""
    return base if number == 0 else f"{base}_{number}"
