"""Inputs of Keras's losses, whatever Keras computes with; see ``framework.loss_facts``.

Looked at are the cross entropies, by class, by name or by function; a loss of the program's own is none of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from smd_agent.framework import loss_facts
from smd_agent.framework.keras.attributes import attribute
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.usage import Usage

_BINARY, _CATEGORICAL, _SPARSE = "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"
LOSS = "loss/"
_WRAPPER = "LossFunctionWrapper"

MOST_OF_A_SAMPLE = 262_144
"""Numbers that a model may give for one sample, if a compiled step is to return them for this."""


@dataclass(frozen=True)
class CrossEntropy:
    """How a loss is set up.

    name: of its class or, where a function was given, of that.
    function: Keras's function that computes it.
    expects_logits: whether it was told ``from_logits=True``.
    axis: of the classes.
    ignored: a label that does not count.
    """

    name: str
    function: str
    expects_logits: bool
    axis: int = -1
    ignored: int | None = None

    @property
    def has_classes(self) -> bool:
        """Whether the numbers along its axis are one choice."""
        return self.function != _BINARY

    def told(self, shape: tuple[int | None, ...] | None) -> Numbers:
        """The facts of it that do not depend on values, of an input of this shape."""
        found: Numbers = {"expects_logits": float(self.expects_logits)}
        if self.has_classes and shape and (classes := shape[self.axis]) is not None:
            found["classes"] = classes
        return found

    def of_input(self, values: Array) -> Numbers:
        """The facts of its input."""
        if values.dtype.kind != "f" or not values.ndim:
            return {}
        return loss_facts.rows(values, self.axis) if self.has_classes else loss_facts.ends(values)

    def of_labels(self, values: Array) -> Numbers:
        """The facts of its labels; none where they are no classes."""
        if not self.has_classes or values.dtype.kind not in "iuf" or not values.ndim:
            return {}
        found: Array | None = values
        if self.function == _CATEGORICAL:
            found = loss_facts.classes_of_one_hot(values, self.axis)
        return {} if found is None else loss_facts.labels(found, ignored=self.ignored)


@dataclass(frozen=True)
class TracedLoss:
    """A loss in a compiled step.

    kind: how it is set up.
    numbers: what was known of it when the step was traced.
    """

    kind: CrossEntropy
    numbers: Numbers


class LossNumbers:
    """The facts of the losses of one saved step.

    Args:
        usage: takes them.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._calls: dict[str, int] = {}
        self._seen: dict[str, Numbers] = {}

    def saw(self, kind: CrossEntropy, numbers: Numbers) -> None:
        """A loss has been computed in an eager step."""
        number = self._calls.get(kind.name, 0)
        self._calls[kind.name] = number + 1
        if self._usage.wanted and number < loss_facts.CALLS:
            self._usage.save(f"{LOSS}{kind.name}_{number}", numbers)

    def add(self, name: str, numbers: Numbers) -> None:
        """A compiled step has computed a loss of this name, of which the values tell this."""
        self._seen.setdefault(name, {}).update(numbers)

    def save(self, traced: Mapping[str, TracedLoss]) -> None:
        """Save the facts of the losses that were traced, by name."""
        if self._usage.wanted:
            for name, loss in traced.items():
                self._usage.save(name, {**loss.numbers, **self._seen.get(name, {})})


def cross_entropy(loss: Any) -> CrossEntropy | None:
    """How a loss is set up, if it is one of those that are looked at."""
    function = attribute(loss, "fn")
    if type(function) is not FunctionType:
        return None
    name, package = function.__name__, str(function.__module__).partition(".")[0]
    if name not in (_BINARY, _CATEGORICAL, _SPARSE) or package not in ("keras", "tf_keras"):
        return None
    given: dict[str, Any] = attribute(loss, "_fn_kwargs", {})
    own = type(loss).__name__
    axis, ignored = given.get("axis", -1), given.get("ignore_class")
    return CrossEntropy(
        name if own == _WRAPPER else own,
        name,
        bool(given.get("from_logits")),
        axis if is_a(axis, int) else -1,
        ignored if is_a(ignored, int) else None,
    )


def is_small(shape: tuple[int | None, ...] | None) -> bool:
    """Whether of a tensor of this shape all numbers may be asked for, at any size of the batch."""
    return shape is not None and math.prod(size or 1 for size in shape[1:]) <= MOST_OF_A_SAMPLE
