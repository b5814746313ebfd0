"""Numbers of the inputs that a model is called with in a step that is saved: their scales, and what is not finite.

``usage/input/<model>_<i>/<fact>``, of the inputs of the step's first call that are floats or integers; ``i`` counts
all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import ModelCall, on
from smd_agent.framework.usage import Usage, UsageProbe

Numbers = dict[str, Any]

FACTS: Mapping[tuple[str, ...], str] = {
    ("min", "max", "mean", "std"): "of the elements of a model's input in its first call of the step, if it has"
    " floats or integers; NaN where one is NaN; in evaluation too",
    ("equal_samples",): "of an input with more than one axis: 1 if all samples (first axis) are equal, as far as a"
    " few elements of up to 64 of them tell, and not of one number each; else 0, as of a single sample",
    ("not_finite",): "the share of its elements that are NaN or infinite",
    (facts.INTEGERS,): "1 if they are integers, such as the bytes of an image or the numbers of tokens, else missing",
    ("largest_scale", "largest_column"): "of an input of shape (rows, features): the largest root mean square of a"
    " column, and which column that is, from 0",
    ("smallest_scale", "smallest_column"): "the same for the smallest one that is not 0; infinite where all are",
    (facts.AS_IT_IS,): "1 if a layer that multiplies by weights, such as a linear, convolutional or recurrent one, is"
    " given the input, or a view of it, unchanged, else 0; missing where no such layer is called",
}
"""All of them, by name, with what they are; the documentation has them from here."""

# Of each input; the digest needs more, because one element may be all that differs.
_LOOKED_AT = facts.LOOKED_AT // 4
# Columns of a table with units of their own; what has more is made of pixels or words.
_COLUMNS = 2_048
# Samples of an input that are compared, and about as many elements of each.
_SAMPLES = 64
_OF_EACH = 256
# Squares of numbers between these are exact enough in float32.
_FEWEST, _MOST = 1e-15, 1e15
# Inputs of a model that are looked at.
_INPUTS = 4
# Integers of more bytes are not exact enough in float32.
_BYTES = 2


class ModelInputs(UsageProbe, domain=INPUTS, doing="looking at the scales of a model's inputs"):
    """The inputs of models in one step that is saved.

    Args:
        usage: takes the numbers.
        numbers_of: gives the numbers of each of the first inputs among what a model is called with, by its place; only
            of those that are numbers and can be read.
    """

    def __init__(self, usage: Usage, numbers_of: Callable[[Any, int], Iterable[tuple[int, Numbers]]]) -> None:
        super().__init__(usage)
        self._numbers_of = numbers_of
        self._told: set[str] = set()

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """Save the numbers of a model's inputs, once a step."""
        if call.name not in self._told:
            self._told.add(call.name)
            found = self._numbers_of(call.inputs, _INPUTS)
            self._save(call, [(f"{facts.USED_INPUT}/{call.name}_{i}", numbers) for i, numbers in found])

    def _save(self, call: ModelCall, found: list[tuple[str, Numbers]]) -> None:
        """Save the numbers of the inputs of a model's first call, by their titles."""
        for title, numbers in found:
            self._usage.save(title, numbers, here=True)


def is_table(shape: tuple[int, ...]) -> bool:
    """True if an input of this shape is one of rows with features."""
    return len(shape) == 2 and shape[0] > 1 and 1 < shape[1] <= _COLUMNS


def is_integer(dtype: np.dtype[Any]) -> bool:
    """True if the elements of an array are integers."""
    return dtype.kind in "iu"


class LookedAt(NamedTuple):
    """The part of an input that is looked at; it is not empty.

    elements: of a table, rows that are spread evenly.
    shape: of all of the input.
    samples: a few elements of several samples, which lie along the first axis.
    """

    elements: Any
    shape: tuple[int, ...]
    samples: Any

    def converted(self, convert: Callable[[Any], Any]) -> LookedAt:
        """The same with other arrays."""
        return self._replace(elements=convert(self.elements), samples=convert(self.samples))


def sample(values: Any) -> LookedAt:
    """The part of an array or tensor that is looked at; it is not empty."""
    shape = tuple(values.shape)
    if is_table(shape):
        return LookedAt(values[:: -(-shape[0] * shape[1] // _LOOKED_AT)], shape, _samples(values, shape))
    return LookedAt(facts.sample(values.reshape(-1), _LOOKED_AT), shape, _samples(values, shape))


def _samples(values: Any, shape: tuple[int, ...]) -> Any:
    most = [_SAMPLES, *[int(_OF_EACH ** (1 / max(len(shape) - 1, 1)))] * (len(shape) - 1)]
    return values[tuple(slice(None, None, -(-size // few)) for size, few in zip(shape, most, strict=False))]


def numbers_of(looked: LookedAt) -> Numbers:
    """The numbers of an input, of NumPy's floats or integers."""
    is_whole = is_integer(looked.elements.dtype)
    looked = looked.converted(_as_floats)
    part = looked.elements
    with np.errstate(all="ignore"):
        numbers = numbers_of_any(looked)
        if not _FEWEST < max(abs(numbers["min"]), abs(numbers["max"])) < _MOST:
            # Squares of float32 may overflow or vanish.
            part = part.astype(np.float64, copy=False)
        numbers |= {"mean": part.mean(), "std": part.std()}
        numbers["not_finite"] = 1 - np.isfinite(part).mean()
        if is_table(looked.shape):
            numbers |= _columns(np.sqrt(np.square(part).mean(0)))
    return {**numbers, facts.INTEGERS: 1.0} if is_whole else numbers


def numbers_of_any(looked: LookedAt) -> Numbers:
    """Those numbers that take only what arrays of NumPy and tensors of PyTorch both have: a new one is written here."""
    numbers = {"min": looked.elements.min(), "max": looked.elements.max()}
    if len(looked.shape) > 1:
        samples = looked.samples.reshape(len(looked.samples), -1)
        first = samples[0]
        numbers["equal_samples"] = ((samples == first).all() & (first != first[0]).any()) * int(len(samples) > 1)
    return numbers


def _as_floats(part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    is_wide = part.dtype.itemsize > _BYTES if is_integer(part.dtype) else part.dtype == np.float64
    return part.astype(np.float64 if is_wide else np.float32, copy=False)


def _columns(scales: npt.NDArray[Any]) -> Mapping[str, Any]:
    largest = scales.argmax()
    known = np.where(scales > 0, scales, np.inf)
    smallest = known.argmin()
    return {
        "largest_scale": scales[largest],
        "largest_column": int(largest),
        "smallest_scale": known[smallest],
        "smallest_column": int(smallest),
    }
