"""What TensorFlow's variables are called in a run.

A Keras 3 variable is called by its ``path`` (its TensorFlow name is just ``kernel``), any other by its TensorFlow name
without the output number.
"""

from __future__ import annotations

import re
import weakref
from typing import Any

import tensorflow as tf

_PORT = re.compile(r":\d+$")
_REPLICA = re.compile(r"/replica_\d+$")


def is_variable(value: Any) -> bool:
    """Whether this is a variable that can be trained: TensorFlow's own, a distributed one or one of Keras 3."""
    # Asked of the class: a distributed variable's handle is an error outside of a replica.
    kind = type(value)
    return isinstance(value, tf.Variable) or (hasattr(kind, "handle") and hasattr(kind, "path"))


def plain_name(variable: Any) -> str:
    """The name the user knows the variable by; several may share it."""
    if not isinstance(variable, tf.Variable):
        return str(variable.path)
    return _REPLICA.sub("", _PORT.sub("", str(variable.name)))


class VariableNames:
    """Gives each variable a name of its own: of several that are called alike, the later ones get ``_1``, ``_2`` ...

    Variables are held weakly and by identity: they define neither equality nor a hash. The name of one that is gone can
    be given again, so a model built anew in a loop keeps its names.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._taken: set[str] = set()

    def of(self, variable: Any) -> str:
        """The variable's name in this run."""
        key = id(variable)
        known = self._by_id.get(key)
        if known is not None and known[0]() is variable:
            return known[1]
        name = base = plain_name(variable)
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


def weight_name(name: str) -> str:
    """Where a variable's value is stored."""
    return f"weights/{name}:0"


def gradient_name(name: str, number: int = 0) -> str:
    """Where a variable's gradient is stored; ``number`` counts several of one step."""
    return f"gradients/{name}Grad" + (f"_{number}" if number else "")


def loss_name(number: int) -> str:
    """Where what a tape differentiates is stored; ``number`` counts several of one step."""
    return f"loss_{number}" if number else "loss"
