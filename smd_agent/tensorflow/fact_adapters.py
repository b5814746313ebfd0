"""Variables of TensorFlow and inputs of models, as the facts of a training step look at them.

See ``framework.training_facts``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from smd_agent.framework import input_digests
from smd_agent.framework import training_facts as facts
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.model_inputs import Numbers, numbers_of, sample
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.sequence_layers import DIMENSIONS
from smd_agent.framework.token_padding import PLACES, ROWS, of_steps, padding
from smd_agent.framework.weight_changes import Moved, changes, part_of
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.types import KerasVariable, Variable


class Look:
    """Variables before and after an update, and what models are called with."""

    def owned_by(self, optimizer: Sequence[Variable]) -> Sequence[Variable]:
        """Variables, which stand for the optimizer that updates them."""
        return optimizer

    def size_of(self, parameter: Variable) -> int:
        """Number of elements of a variable."""
        return math.prod(parameter.shape)

    def sample(self, parameter: Variable) -> npt.NDArray[Any] | None:
        """A copy of what is looked at of a variable, in float32 or float64; None if it has no floats."""
        array = _array(parameter)
        return None if array is None or array.dtype.kind != "f" else part_of(array)

    def changes(self, found: Iterable[Moved]) -> Iterable[tuple[Moved, np.float64, np.float64]]:
        """Update and update ratio of each."""
        return changes(found)

    def digest_of(self, inputs: Sequence[object]) -> npt.NDArray[np.int64] | None:
        """The digest of the tensors that a model is called with; None where there are none."""
        parts = []
        for tensor in inputs:
            array = _array(tensor)
            if array is None:
                return None
            words = input_digests.words_of(
                _bytes_of(array) if array.dtype.kind == "U" else facts.sample(array.reshape(-1))
            )
            parts.append((words, cast("Any", tensor).dtype.name, tuple(cast("Any", tensor).shape)))
        found: npt.NDArray[np.int64] | None = input_digests.digest(parts, np)
        return found

    def numbers_of(self, inputs: Sequence[object], most: int) -> Iterator[tuple[int, Numbers]]:
        """The numbers of each of the first inputs that has numbers, by its place."""
        for i, tensor in enumerate(inputs[:most]):
            array = _array(tensor) if _has_numbers(tensor, inputs[i + 1 : i + 3]) else None
            if array is not None and array.size > 1:
                # What was picked of a tensor on an accelerator is no table any more.
                whole = array if array.shape == tuple(cast("Any", tensor).shape) else array.reshape(-1)
                yield i, numbers_of(sample(whole))

    def padding_of(self, given: Any) -> Numbers | None:
        """The facts of the padding of an input; None of one that has no rows of tokens, or of steps of numbers."""
        is_of_tokens = given.dtype.is_integer and len(given.shape) == 2
        if 0 in given.shape or not (is_of_tokens or len(given.shape) == DIMENSIONS):
            return None
        found = to_array(given[:ROWS, -PLACES:])
        return None if found is None else (padding if is_of_tokens else of_steps)(found[0])

    def numbers_in(self, inputs: Sequence[Any]) -> Iterator[Any]:
        """The inputs that are floats or integers."""
        for tensor in inputs:
            if tensor.dtype.is_floating or tensor.dtype.is_integer:
                yield tensor

    def as_floats(self, part: Any) -> npt.NDArray[np.float32]:
        """A copy of a part of such an input."""
        found = to_array(part)
        assert found is not None
        return found[0].astype(np.float32)


def _has_numbers(tensor: Any, following: Sequence[Any]) -> bool:
    """True if an input has floats, or integers that are no places in a sparse or ragged one.

    Those of a sparse one come with its values and its shape behind them, those of a ragged one have one dimension.
    """
    if tensor.dtype.is_floating:
        return True
    if not tensor.dtype.is_integer or len(tensor.shape) <= 1:
        return False
    return [tuple(one.shape) for one in following] != [(size,) for size in tensor.shape]


def _array(value: Any) -> npt.NDArray[Any] | None:
    """The part of a variable or a tensor that is looked at, or all of it."""
    found = to_array(_on_device(value))
    return None if found is None else found[0]


def _on_device(value: Any) -> Any:
    """The part of values on an accelerator that is looked at, picked there; other values as they are."""
    tensor = value if is_a(value, (tf.Tensor, tf.Variable)) else cast("KerasVariable", value).value
    size = math.prod(tensor.shape)
    device: str = attribute(tensor, "device") or ""
    if size <= facts.LOOKED_AT or "CPU" in device.upper() or not device:
        return value
    return picked(tensor, size)


def picked(tensor: Any, size: int) -> Any:
    """The same elements of a tensor as ``training_facts.sample`` gives of a flat one."""
    length = size // facts.RUNS
    flat = tf.reshape(tensor, [-1])[: facts.RUNS * length]
    return tf.reshape(flat, [facts.RUNS, length])[:, : facts.LOOKED_AT // facts.RUNS]


def _bytes_of(texts: npt.NDArray[np.str_]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("\0".join(texts.reshape(-1).tolist()).encode("utf-8", "replace"), np.uint8)
