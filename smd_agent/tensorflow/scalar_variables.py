"""Variables of one number each, which are read together, as one operation for all takes hardly longer than for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smd_agent.framework.keras.plain_access import attribute


def plain_variable(variable: Any) -> Any | None:
    """TensorFlow's variable of one number that this is, or is around.

    None where to read it would wait for an accelerator or for other replicas, and where it is something else.
    """
    # Keras 3's own is around one of TensorFlow's.
    inside = attribute(variable, "_value", variable)
    if type(inside) is not ResourceVariable or not inside.dtype.is_floating or inside.shape.rank != 0:
        return None
    return inside if "device:CPU" in inside.handle.device else None


class Scalars:
    """Some variables, of which only the handles are kept.

    Args:
        variables: plain ones.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self._pairs = [(variable.handle, variable.dtype) for variable in variables]
        self._handles = [handle for handle, _ in self._pairs]
        self._attributes = "N", len(variables), "dtypes", (*(dtype.as_datatype_enum for _, dtype in self._pairs),)
        self._together = len(variables) > 1

    def read(self) -> list[float]:
        """Their values now."""
        if self._together:
            found = self._read_together()
            if found is not None:
                return found
            self._together = False
        read = gen_resource_variable_ops.read_variable_op
        return [float(read(handle, dtype)) for handle, dtype in self._pairs]

    def _read_together(self) -> list[float] | None:
        """None where TensorFlow has no such operation: it is none of those that it documents."""
        count = len(self._handles)
        try:
            found = execute.execute(b"_ReadVariablesOp", count, self._handles, self._attributes, context.context())
        except tf.errors.OpError:
            return None
        return [*map(float, found)]


class TensorflowVariables:
    """Variables of TensorFlow's; see ``ScalarVariables``."""

    def can_be_read(self) -> bool:
        """True where no graph is built."""
        return bool(tf.executing_eagerly())

    def plain(self, variable: Any) -> Any | None:
        """The variable of one number that this is, or is around."""
        return plain_variable(variable)

    def reader(self, variables: Sequence[Any]) -> Callable[[], list[float]]:
        """A function that gives the numbers that plain variables have when it is called."""
        return Scalars(variables).read

    def rounding(self, variable: Any) -> float:
        """The largest part of a number by which a plain variable rounds it."""
        return float(np.finfo(variable.dtype.as_numpy_dtype).eps) / 2
