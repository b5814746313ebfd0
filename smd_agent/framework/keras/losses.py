"""Inputs of Keras's losses, whatever Keras computes with; see ``framework.loss_facts``.

Looked at are the cross entropies, by class, by name or by function, and those losses of numbers of which the prediction
comes from an activation that bounds it; a loss of the program's own is none of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from smd_agent.framework import loss_facts, target_reach
from smd_agent.framework.keras.attributes import attribute
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.target_reach import Range
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage

_BINARY, _CATEGORICAL, _SPARSE = "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"
_OF_NUMBERS = (
    *("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error"),
    *("huber", "log_cosh", "poisson"),
)
LOSS = "loss/"
SOFTMAX_OVER = "softmax_over"
_WRAPPER = "LossFunctionWrapper"

MOST_OF_A_SAMPLE = 262_144
"""Numbers that a model may give for one sample, if a compiled step is to return them for this."""

Shape: TypeAlias = tuple[int | None, ...] | None
"""The shape of a tensor; None of a size or a shape that is not known."""


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

    def looks_at_input(self, shape: Shape) -> bool:
        """Whether the values of an input of this shape are asked for."""
        return is_small(shape)

    def looks_at_labels(self, _: Shape) -> bool:
        """Whether those of its labels are."""
        return self.has_classes

    def told(self, shape: Shape, origin: Numbers) -> Numbers:
        """The facts of it that do not depend on values, of an input of this shape and origin."""
        found: Numbers = {"expects_logits": float(self.expects_logits)}
        if self.has_classes and shape and (classes := shape[self.axis]) is not None:
            found["classes"] = classes
        return {**found, **origin}

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
class LossOfNumbers:
    """A loss that compares numbers, of which the prediction is bounded.

    name: of its class or, where a function was given, of that.
    within: the range of the prediction.
    """

    name: str
    within: Range

    expects_logits = False
    ignored = None

    def looks_at_input(self, _: Shape) -> bool:
        """The values of its input are not asked for."""
        return False

    def looks_at_labels(self, shape: Shape) -> bool:
        """Whether those of labels of this shape are."""
        return is_small(shape)

    def told(self, _: Shape, origin: Numbers) -> Numbers:
        """The facts of it that do not depend on values, of an input of this origin."""
        over = origin.get(SOFTMAX_OVER)
        return {**target_reach.ends(self.within), **({} if over is None else {SOFTMAX_OVER: over})}

    def of_input(self, _: Array) -> Numbers:
        """There are none."""
        return {}

    def of_labels(self, values: Array) -> Numbers:
        """The facts of its labels, which are targets."""
        if values.dtype.kind not in "iuf" or not values.size:
            return {}
        return target_reach.facts(self.within, values.reshape(-1)[:LOOKED_AT].astype(np.float32), np.mean)


KnownLoss: TypeAlias = CrossEntropy | LossOfNumbers


@dataclass(frozen=True)
class TracedLoss:
    """A loss in a compiled step.

    kind: how it is set up.
    numbers: what was known of it when the step was traced.
    """

    kind: KnownLoss
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

    def saw(self, kind: KnownLoss, numbers: Numbers) -> None:
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


def known_loss(loss: Any, within: Range | None) -> KnownLoss | None:
    """How a loss is set up, if it is one of those that are looked at.

    Args:
        loss: it.
        within: the range of the prediction; None if it has none, or that is not known.
    """
    function = attribute(loss, "fn")
    if type(function) is not FunctionType or str(function.__module__).partition(".")[0] not in ("keras", "tf_keras"):
        return None
    name, own = function.__name__, type(loss).__name__
    title = name if own == _WRAPPER else own
    if name in _OF_NUMBERS and within is not None:
        return LossOfNumbers(title, within)
    if name not in (_BINARY, _CATEGORICAL, _SPARSE):
        return None
    given: dict[str, Any] = attribute(loss, "_fn_kwargs", {})
    axis, ignored = given.get("axis", -1), given.get("ignore_class")
    return CrossEntropy(
        title,
        name,
        bool(given.get("from_logits")),
        axis if is_a(axis, int) else -1,
        ignored if is_a(ignored, int) else None,
    )


def is_small(shape: Shape) -> bool:
    """Whether of a tensor of this shape all numbers may be asked for, at any size of the batch."""
    return shape is not None and math.prod(size or 1 for size in shape[1:]) <= MOST_OF_A_SAMPLE
