"""Makers of values that are not finite: which operation, batch or weight has made that of a loss.

Each tensor with such a value has an origin, which follows it through the operations that it goes into: the origin of a
loss is who has made it so. A mask of infinities is none as long as no NaN comes of it, nor is a NaN that nothing goes
on with. What makes a NaN out of no NaN is an origin; if it was given an infinity that an operation has made, it is that
operation.

Arrays are NumPy's. Tensors are known by identity, and those that are not finite are held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.framework.made_values import Made, Place, in_words, rows_in_words

Array = npt.NDArray[Any]

# They hand on what they are given, or write what they are told to: their infinities are masks.
_FILLS = ("fill", "full", "const", "select", "where", "pad", "identity", "cast", "zeros", "ones")
_SPANS = 2
_WHERE_UNKNOWN = "what computes the loss"


class Value(NamedTuple):
    """A tensor: the framework's object, and its array."""

    tensor: object
    array: Array


class Source(NamedTuple):
    """The origin of values that were not finite before any operation.

    Attributes:
        words: who it is and what it has, in words.
        of_weights: it is a parameter or a state of the model.
    """

    words: str
    of_weights: bool = False


class Operation(NamedTuple):
    """An operation that has run.

    Attributes:
        name: such as ``Log``.
        place: gives where it stands in the program, asked only for one that makes a value that is not finite.
        backward_of: what it computes the gradient of, in words; empty outside of a backward pass.
    """

    name: str
    place: Callable[[], Place | None]
    backward_of: str = ""


class Makers:
    """The makers in one training step.

    Attributes:
        rows: of the batch; 0 as long as that is not known.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._origins: dict[int, tuple[object, Made | Source]] = {}

    def forget(self) -> None:
        """Another step begins."""
        self.rows = 0
        self._origins.clear()

    def comes(self, value: Value, words: str, of_weights: bool = False) -> None:
        """A tensor comes from elsewhere.

        Args:
            value: it.
            words: who it is, with ``{}`` where it is to be said what it has: ``the weights had {} before: kernel``.
            of_weights: it is a parameter or a state of the model.
        """
        kind = kind_of(value.array)
        if kind:
            rows = "" if of_weights else self._rows_of(value.array)
            words = f"{words.replace('{}', kind)}{f' in {rows}' if rows else ''}"
            self._origins[id(value.tensor)] = value.tensor, Source(words, of_weights)

    def goes(self, tensor: object, other: object) -> None:
        """One tensor is written to another one, such as a variable.

        An update writes what a backward pass has made: for the steps after it, it is the weights that had it before.
        """
        known = self._origins.get(id(tensor))
        if known is not None and not (isinstance(known[1], Made) and known[1].backward_of):
            self._origins[id(other)] = other, known[1]

    def saw(self, operation: Operation, given: Sequence[Value], results: Sequence[Value]) -> None:
        """An operation has run."""
        bad = [(one, kind) for one in results if (kind := kind_of(one.array))]
        if not bad:
            return
        kinds = [kind_of(one.array) for one in given]
        for one, kind in bad:
            origin = self._origin_of(operation, one, kind, given, kinds)
            if origin is not None:
                self._origins[id(one.tensor)] = one.tensor, origin

    def knows(self, tensor: object) -> bool:
        """True if it is known who has made that a tensor is not finite."""
        return self._known(tensor) is not None

    def maker_of(self, tensor: object) -> str:
        """The maker of a tensor that is not finite, in words; empty where that is not known."""
        found = self._known(tensor)
        if found is None:
            return ""
        return found.words if isinstance(found, Source) else in_words(found, _WHERE_UNKNOWN)

    def is_of_weights(self, tensor: object) -> bool:
        """True if weights had such values before."""
        found = self._known(tensor)
        return isinstance(found, Source) and found.of_weights

    # How it is done.

    def _known(self, tensor: object) -> Made | Source | None:
        found = self._origins.get(id(tensor))
        return None if found is None else found[1]

    def _origin_of(
        self, operation: Operation, result: Value, kind: str, given: Sequence[Value], kinds: Sequence[str]
    ) -> Made | Source | None:
        """The origin of a result that is not finite; None: it is a mask."""
        first = next((one for one, other in zip(given, kinds, strict=True) if other == "NaN"), None)
        if kind == "NaN" and first is not None:
            return self._known(first.tensor) or self._foreign(operation, first, "NaN")
        # In the order in which they were given.
        infinite = [self._known(one.tensor) for one, other in zip(given, kinds, strict=True) if other]
        known = next((one for one in infinite if one is not None), None)
        if kind == "NaN":
            if isinstance(known, Made):
                return known if known.ending else known._replace(ending=_named(operation))
            return known or self._made(operation, result, kind, given)
        if any(kinds):
            return known
        return None if operation.name.lower().startswith(_FILLS) else self._made(operation, result, kind, given)

    def _foreign(self, operation: Operation, value: Value, kind: str) -> Source:
        place = operation.place()
        rows = self._rows_of(value.array)
        inside = place.module if place is not None and place.module else _WHERE_UNKNOWN
        where = f" ({place})" if place is not None and place.file else ""
        return Source(f"what {operation.name} in {inside} was given has {kind}{f' in {rows}' if rows else ''}{where}")

    def _made(self, operation: Operation, result: Value, kind: str, given: Sequence[Value]) -> Made:
        spans = [_range(one.array) for one in given if one.array.size][:_SPANS]
        rows = f"{self._rows_of(result.array)}" if self.rows > 1 else ""
        return Made(operation.name, operation.backward_of, kind, spans, rows, operation.place())

    def _rows_of(self, array: Array) -> str:
        if not array.ndim or (self.rows and array.shape[0] != self.rows):
            return ""
        bad = ~np.isfinite(array).reshape(array.shape[0], -1).all(1)
        return rows_in_words([int(row) for row in np.flatnonzero(bad)], self.rows)


def kind_of(array: Array) -> str:
    """``NaN``, ``inf`` or ``-inf`` where an array has such a value, the first that it has of them; else nothing."""
    if not is_floating(array) or not array.size:
        return ""
    if np.isfinite(array).all():
        return ""
    if np.isnan(array).any():
        return "NaN"
    return "inf" if (array > 0)[np.isinf(array)].any() else "-inf"


def is_floating(array: Array) -> bool:
    """True if an array has numbers that may be not finite; those of 16 bits that NumPy does not know are such, too."""
    return array.dtype.kind == "f" or "float" in array.dtype.name


def _range(array: Array) -> tuple[float, float]:
    return float(array.min()), float(array.max())


def _named(operation: Operation) -> str:
    return f"{operation.name} in {operation.backward_of}" if operation.backward_of else operation.name
