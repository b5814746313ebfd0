"""Attributes of the program's models, layers, optimizers and losses, as Keras itself has them.

A class of the program's may have properties, ``__getattr__`` and the like of its own, which count their calls, compute
or raise: they are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from smd_agent.framework.plain_access import in_class

_PACKAGES = ("keras", "tf_keras")
# An optimizer of a graph is of TensorFlow's, and what variables are told to a hook stands in an object of ours.
_KNOWN = (*_PACKAGES, "tensorflow", "smd_agent")
_LISTS = {
    *("variables", "trainable_variables", "non_trainable_variables", "weights", "trainable_weights"),
    *("non_trainable_weights", "trainable", "__getattribute__"),
}


def attribute(owner: object, name: str, default: Any = None) -> Any:
    """The attribute as Keras's or TensorFlow's own class has it; of an object of no such class, what stands in it."""
    for cls in type(owner).__mro__:
        if cls.__module__.partition(".")[0] in _KNOWN:
            return _found(cls, owner, name, default)
    return _found(object, owner, name, default)


def unwrapped(value: Any) -> Any:
    """A dict or tuple that TensorFlow has put into a proxy, since it is an attribute of a model; else the value."""
    return attribute(value, "__wrapped__", value)


def variables_in(model: object, kind: str) -> list[Any]:
    """The ``"variables"`` or the ``"trainable_variables"`` of a model and of the layers inside of it."""
    layers = flat_layers(model)
    if not have_own_lists(layers):
        return list(attribute(model, kind, ()))
    if kind == "trainable_variables":
        layers = [layer for layer in layers if own_attributes(layer).get("_trainable", True)]
    found = {id(variable): variable for layer in layers for variable in own_variables(layer)}
    return [one for one in found.values() if kind == "variables" or attribute(one, "trainable", True)]


def have_own_lists(layers: Iterable[object]) -> bool:
    """True if a class of the program's among those of some layers says itself which variables there are."""
    for kind in {id(type(layer)): type(layer) for layer in layers}.values():
        for cls in kind.__mro__:
            if is_of_keras(cls):
                break
            if not _LISTS.isdisjoint(vars(cls)):
                return True
    return False


def own_variables(layer: object) -> Iterator[Any]:
    """The variables that a layer holds itself, those of layers inside of it aside."""
    stored = own_attributes(layer)
    for kind in ("_trainable", "_non_trainable"):
        # Keras 3 calls them so, Keras 2 otherwise.
        yield from stored.get(f"{kind}_variables") or stored.get(f"{kind}_weights") or ()


def flat_layers(model: object) -> list[Any]:
    """A model and all layers inside of it, from the outside in."""
    for cls in type(model).__mro__:
        flatten: Any = in_class(cls, "_flatten_layers") if is_of_keras(cls) else None
        if flatten is not None:
            return list(flatten(model))
    return [model]


def own_attributes(owner: object) -> dict[str, Any]:
    """The attributes in an object itself, nothing where it has no room for any."""
    try:
        found: dict[str, Any] = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return found


def is_of_keras(cls: type | FunctionType) -> bool:
    """True if a class or a function is one of Keras's."""
    # A program may make a function that tells no module.
    return str(cls.__module__).partition(".")[0] in _PACKAGES


def _found(cls: type, owner: object, name: str, default: Any) -> Any:
    described: Any = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    try:
        if in_class(type(described), "__set__") is not None:
            return described.__get__(owner, type(owner))
        stored = own_attributes(owner)
        if name in stored:
            return stored[name]
        if described is not None:
            bound = in_class(type(described), "__get__") is not None
            return described.__get__(owner, type(owner)) if bound else described
        # Keras 2's older optimizers keep their settings so.
        return stored["_hyper"].get(name, default) if "_hyper" in stored else default
    except AttributeError:
        return default
