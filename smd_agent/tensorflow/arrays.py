"""TensorFlow's values as NumPy arrays: shared where that is possible, widened where NumPy has no such type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smd_agent.core.ports import Deferred
from smd_agent.core.value_writing import Captured
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.tensorflow.types import KerasVariable
from smd_agent.tensorflow.variable_names import is_variable


class Converted(NamedTuple):
    """An array that is converted already: what a deferred value gives.

    dtype: name of the dtype it was widened from, if it was.
    """

    array: npt.NDArray[Any]
    dtype: str | None


@dataclass(frozen=True)
class Rows(Deferred):
    """A gradient of which only some rows were computed; a row may come up more than once, and then they add up.

    shape: of the whole, the variable's.
    """

    values: Any
    indices: Any
    shape: tuple[int, ...]

    def read(self) -> Converted | None:
        """The whole gradient, zeros where no row was."""
        found = to_array(self.values)
        if found is None:
            return None
        array = np.zeros(self.shape, found[0].dtype)
        np.add.at(array, np.asarray(self.indices), found[0])
        return Converted(array, found[1])


def to_array(value: object) -> Captured | None:
    """The values, and the name of their dtype if they had to be widened; None where there is nothing to read.

    The array of an eager tensor or a variable may share its memory. A gradient of rows comes out whole, zeros where no
    row was.
    """
    array = _view(value)
    if array is not None:
        return widened(array)
    if isinstance(value, Converted):
        return value
    if is_a(value, tf.IndexedSlices):
        return Rows(value.values, value.indices, tuple(value.dense_shape.numpy())).read()
    if is_a(value, tf.Tensor) or is_variable(value):
        try:
            value = value.numpy()
        except (AttributeError, NotImplementedError, TypeError, tf.errors.InvalidArgumentError):
            # A symbolic tensor, a variant or a resource: nothing to read.
            return None
    return widened(np.asarray(value))


def _view(value: Any) -> npt.NDArray[Any] | None:
    """The memory of an eager tensor or a variable; None where this way does not lead to it.

    ``numpy()`` copies, and of a variable runs two operations, which takes five times as long.
    """
    if not is_a(value, tf.Tensor):
        if not is_a(value, tf.Variable) and is_variable(value):
            # Keras 3's own, around TensorFlow's.
            value = cast("KerasVariable", value).value
        # Variables of other kinds (distributed ones, say) are read in their own way; a graph is not to get our reads.
        if in_class(type(value), "read_value") is not ResourceVariable.read_value or not tf.executing_eagerly():
            return None
        value = tf.raw_ops.ReadVariableOp(resource=value.handle, dtype=value.dtype)
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError):
        # A symbolic tensor, a resource, or a type that Python knows nothing of.
        return None


def widened(array: npt.NDArray[Any]) -> Captured | None:
    """The array in a type of NumPy's own."""
    if array.dtype.kind in "fiubcU":
        return array, None
    if array.dtype.kind == "O":
        return _text(array)
    try:
        # bfloat16, float8 and int4 come from ml_dtypes; float32 holds all their values.
        return array.astype(np.float32), array.dtype.name
    except (TypeError, ValueError):
        return None


def _text(array: npt.NDArray[Any]) -> Captured | None:
    if all(is_a(part, (bytes, str)) for part in array.flat):
        parts = [part.decode("utf-8", "replace") if is_a(part, bytes) else part for part in array.flat]
        return np.array(parts, dtype=np.str_), None
    return None
