"""Names of TensorFlow's variables in a run.

A Keras 3 variable is called by its ``path`` (its TensorFlow name is just ``kernel``), any other by its TensorFlow name
without the output number.
"""

from __future__ import annotations

import re
from typing import TypeGuard, cast

import tensorflow as tf

from smd_agent.framework.keras.names import Names
from smd_agent.framework.keras.names import VariableNames as DistinctNames
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.tensorflow.types import KerasVariable, Nested, Tensor, Variable

_PORT = re.compile(r":\d+$")
_REPLICA = re.compile(r"/replica_\d+$")


def is_variable(value: object) -> TypeGuard[Variable]:
    """True if this is a variable that can be trained: TensorFlow's own, a distributed one or one of Keras 3."""
    # Asked of the class: a distributed variable's handle is an error outside of a replica.
    kind = type(value)
    return issubclass(kind, tf.Variable) or not (in_class(kind, "handle") is None or in_class(kind, "path") is None)


def is_symbolic(value: object) -> TypeGuard[Tensor]:
    """True if this is a tensor of a graph, which has a name and no values."""
    return is_a(value, tf.Tensor) and bool(tf.is_symbolic_tensor(value))


def variables_in(structure: Nested) -> list[Variable]:
    """The variables in lists and dicts, or the one that it is; what else is in there is left out."""
    return [part for part in tf.nest.flatten(structure) if is_variable(part)]


def plain_name(variable: Variable) -> str:
    """The name the user knows the variable by; several may share it."""
    if not is_a(variable, tf.Variable):
        return cast("KerasVariable", variable).path
    return _REPLICA.sub("", _PORT.sub("", str(variable.name)))


# Those of all Keras in the process are distinct.
NAMES = Names(plain_name)


class VariableNames(DistinctNames):
    """Gives each variable a name of its own."""

    def __init__(self) -> None:
        super().__init__(plain_name)


def weight_name(name: str) -> str:
    """The name that a variable's value is stored under."""
    return f"weights/{name}:0"


def gradient_name(name: str, number: int = 0) -> str:
    """The name that a variable's gradient is stored under; ``number`` counts several of one step."""
    return f"gradients/{name}Grad" + (f"_{number}" if number else "")


def loss_name(number: int) -> str:
    """The name that what a tape differentiates is stored under; ``number`` counts several of one step."""
    return f"loss_{number}" if number else "loss"
