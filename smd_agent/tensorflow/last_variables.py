"""The variables by which the end of a loop with tapes is looked at; see ``framework.last_weights``.

What is kept is a variable's handle, which has its memory live on: the variable itself may go when the program lets go
of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smd_agent.framework.last_weights import LARGEST, LastWeights
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.types import Variable


class _Handle(NamedTuple):
    handle: Any
    dtype: Any


class LastVariables:
    """A few small variables of the last saved step."""

    def __init__(self) -> None:
        self._last: LastWeights[_Handle] = LastWeights(_read, to_array)

    def keep(self, step: int, variables: Iterable[Variable], name_of: Callable[[Variable], str]) -> None:
        """Take note of variables that a step saves."""
        found: Iterable[Any] = [variable for variable in variables if _can_be_kept(variable)]
        self._last.keep(step, [(name_of(one), _Handle(one.handle, one.dtype)) for one in found])

    def not_finite(self) -> Iterator[tuple[str, Any]]:
        """Yield those that are not finite now, with their values."""
        return self._last.not_finite() if tf.executing_eagerly() else iter(())


def _can_be_kept(variable: Any) -> bool:
    return (
        type(variable) is ResourceVariable
        and variable.trainable
        and variable.dtype.is_floating
        and (variable.shape.num_elements() or LARGEST + 1) <= LARGEST
    )


def _read(kept: _Handle) -> Any:
    return tf.raw_ops.ReadVariableOp(resource=kept.handle, dtype=kept.dtype)
