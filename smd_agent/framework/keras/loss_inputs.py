"""Inputs of Keras's losses, whatever Keras computes with; see ``framework.loss_facts``.

Looked at are the cross entropies, by class, by name or by function, and those losses of numbers of which the prediction
comes from an activation that bounds it; a loss of the program's own is none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from smd_agent.framework import loss_facts, target_reach
from smd_agent.framework.flipped_targets import Images
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.plain_access import in_class, is_a, runs_program
from smd_agent.framework.target_reach import Range
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage

_BINARY, _CATEGORICAL, _SPARSE = "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"
_OF_NUMBERS = (
    *("mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error"),
    *("huber", "log_cosh", "poisson"),
)
# What the reduction of a loss is called that is a mean; "auto" is Keras 2's.
_MEANS = ("sum_over_batch_size", "mean", "auto")
LOSS = "loss/"
TARGET = "target/"
SOFTMAX_OVER = "softmax_over"
_WRAPPER = "LossFunctionWrapper"
# Kinds of dtypes.
_NUMBERS = "biuf"

MOST_OF_A_SAMPLE = 262_144
"""Numbers that a model may give for one sample, if a compiled step is to return them for this."""

Shape: TypeAlias = tuple[int | None, ...] | None
"""The shape of a tensor; None of a size or a shape that is not known."""


class LossGiven(NamedTuple):
    """Values of one call of a loss, as far as they are known.

    predictions: what it is given.
    labels: what it compares with.
    result: what it has returned, where that is the mean over all labels.
    """

    predictions: Array | None = None
    labels: Array | None = None
    result: Array | None = None


class LossLook(NamedTuple):
    """The facts of one call of a loss.

    numbers: the facts of this call alone.
    guess: gives those that take the labels of the calls before it, by the name of the loss.
    labels: what it compares with, if that is known.
    """

    numbers: Numbers
    guess: Callable[[LossGuesses, str], Numbers] | None = None
    labels: Array | None = None


@dataclass(frozen=True)
class CrossEntropy:
    """The settings of a loss.

    name: of its class or, where a function was given, of that.
    function: Keras's function that computes it.
    expects_logits: whether it was told ``from_logits=True``.
    axis: of the classes.
    ignored: a label that does not count.
    smoothing: which part of a label is spread over all classes.
    """

    name: str
    function: str
    expects_logits: bool
    axis: int = -1
    ignored: int | None = None
    smoothing: float = 0.0

    @property
    def has_classes(self) -> bool:
        """True if the numbers along its axis are one choice."""
        return self.function != _BINARY

    def looks_at_input(self, shape: Shape) -> bool:
        """True if the values of an input of this shape are asked for."""
        return is_small(shape)

    def looks_at_labels(self, shape: Shape) -> bool:
        """True if those of labels of this shape are."""
        return self.has_classes or is_small(shape)

    def told(self, shape: Shape, origin: Numbers) -> Numbers:
        """The facts of it that do not depend on values, of an input of this shape and origin."""
        found: Numbers = {"expects_logits": float(self.expects_logits)}
        if self.has_classes and shape and (classes := shape[self.axis]) is not None:
            found["classes"] = classes
        return {**found, **origin}

    def look(self, told: Numbers, given: LossGiven) -> LossLook:
        """The facts of one call.

        Args:
            told: those that do not depend on values.
            given: the values.
        """
        values, target, _ = given
        values = values if values is not None and values.dtype.kind == "f" and values.ndim else None
        target = target if target is not None and target.dtype.kind in "iuf" and target.size and target.ndim else None
        look = self._look_at_classes if self.has_classes else self._look_at_yes_and_no
        if target is not None and (target == np.round(target)).all():
            # A tape follows what ones_like() has returned, too.
            told = {name: number for name, number in told.items() if name != loss_facts.SWAPPED or not number}
        return look(told, values, target, given.result)._replace(labels=given.labels)

    def _look_at_classes(
        self, told: Numbers, values: Array | None, target: Array | None, result: Array | None
    ) -> LossLook:
        numbers = {**told, **({} if values is None else loss_facts.rows(values, self.axis))}
        length = target.shape[1] if target is not None and target.ndim == 2 and self.function == _SPARSE else None
        if target is not None and self.function == _CATEGORICAL:
            target = loss_facts.classes_of_one_hot(target, self.axis)
        classes = numbers.get("classes")
        counts = None if target is None else loss_facts.counted(target, ignored=self.ignored, classes=classes)
        if counts is None:
            return LossLook(numbers)
        numbers |= counts.facts(length)
        if result is None or counts.counts is None or not counts.counts.any():
            return LossLook(numbers)
        numbers["loss"] = result
        found = counts.counts, counts.size, None, self.smoothing
        return LossLook(numbers, lambda guesses, name: guesses.of_classes(name, *found))

    def _look_at_yes_and_no(
        self, told: Numbers, values: Array | None, target: Array | None, result: Array | None
    ) -> LossLook:
        numbers = {**told, **({} if values is None else loss_facts.ends(values))}
        rows = None if target is None or result is None else loss_facts.columns(target)
        if rows is None or self.smoothing or not ((rows >= 0) & (rows <= 1)).all():
            return LossLook(numbers)
        numbers["loss"] = result
        return LossLook(numbers, lambda guesses, name: guesses.of_yes_and_no(name, rows))


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
        """True if those of labels of this shape are."""
        return is_small(shape)

    def told(self, _: Shape, origin: Numbers) -> Numbers:
        """The facts of it that do not depend on values, of an input of this origin."""
        over = origin.get(SOFTMAX_OVER)
        return {**target_reach.ends(self.within), **({} if over is None else {SOFTMAX_OVER: over})}

    def look(self, told: Numbers, given: LossGiven) -> LossLook:
        """The facts of its labels, which are targets."""
        labels = given.labels
        if labels is None or labels.dtype.kind not in "iuf" or not labels.size:
            return LossLook(told)
        part = labels.reshape(-1)[:LOOKED_AT].astype(np.float32)
        return LossLook({**told, **target_reach.facts(self.within, part, np.mean)}, labels=labels)


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
        guesses: has the labels of the steps before.
        images: that the model was called with.
    """

    def __init__(self, usage: Usage, guesses: LossGuesses, images: Images) -> None:
        self._usage = usage
        self._guesses = guesses
        self._images = images
        self._calls: dict[str, int] = {}
        self._given: dict[str, LossGiven] = {}

    def saw(self, kind: KnownLoss, look: LossLook) -> None:
        """A loss has been computed."""
        number = self._calls.get(kind.name, 0)
        self._calls[kind.name] = number + 1
        if self._usage.wanted and number < loss_facts.CALLS:
            self._save(f"{LOSS}{kind.name}_{number}", look)

    def add(self, name: str, part: str, values: Array | None) -> None:
        """A compiled step has computed a loss of this name, with such ``predictions``, ``labels`` or ``result``."""
        self._given[name] = self._given.get(name, LossGiven())._replace(**{part: values})

    def save(self, traced: Mapping[str, TracedLoss]) -> None:
        """Save the facts of the losses that were traced, by name."""
        if self._usage.wanted:
            for name, loss in traced.items():
                self._save(name, loss.kind.look(loss.numbers, self._given.get(name, LossGiven())))

    def _save(self, name: str, look: LossLook) -> None:
        numbers = {**look.numbers}
        if look.guess is not None and self._usage.wanted_in_training:
            numbers |= look.guess(self._guesses, name)
        else:
            numbers.pop("loss", None)
        self._usage.save(name, numbers)
        if look.labels is not None and look.labels.dtype.kind in _NUMBERS and self._usage.wanted_in_training:
            self._usage.save(TARGET + name.removeprefix(LOSS), self._images.compared(look.labels))


class LossArguments(NamedTuple):
    """Arguments of a call of a loss that is looked at.

    kind: how it is set up.
    predictions: what it is given, a tensor.
    labels: what it compares with; None where that is neither a tensor nor an array.
    returns_mean: whether it returns the mean over all labels.
    """

    kind: KnownLoss
    predictions: Any
    labels: Any
    returns_mean: bool


def arguments_of(
    loss: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    tensor: type[Any],
    range_of: Callable[[Any], Range | None],
) -> LossArguments | None:
    """The arguments of a call of a loss, if it is one of those that are looked at.

    Args:
        loss: it.
        args, kwargs: as it was called.
        tensor: the class of tensors.
        range_of: gives the range of a tensor; None if it has none, or that is not known.
    """
    arguments = {**dict(zip(("y_true", "y_pred", "sample_weight"), args, strict=False)), **kwargs}
    predictions, labels = arguments.get("y_pred"), arguments.get("y_true")
    kind = known_loss(loss, range_of(predictions)) if is_a(predictions, tensor) else None
    if kind is None:
        return None
    if not is_a(labels, tensor) and not _is_array(type(labels)):
        labels = None
    has_weights = arguments.get("sample_weight") is not None or attribute(predictions, "_keras_mask") is not None
    return LossArguments(kind, predictions, labels, is_mean(loss) and not has_weights)


def _is_array(kind: type) -> bool:
    return in_class(kind, "__array__") is not None and not runs_program(kind, "__array__")


def known_loss(loss: Any, within: Range | None) -> KnownLoss | None:
    """The settings of a loss, if it is one of those that are looked at.

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
    axis, ignored, smoothing = given.get("axis", -1), given.get("ignore_class"), given.get("label_smoothing", 0.0)
    return CrossEntropy(
        title,
        name,
        bool(given.get("from_logits")),
        axis if is_a(axis, int) else -1,
        ignored if is_a(ignored, int) else None,
        smoothing if type(smoothing) is float else 0.0,
    )


def is_mean(loss: Any) -> bool:
    """True if a loss returns the mean over all labels, where they have no weights."""
    reduction = attribute(loss, "reduction")
    # An object of the program's may compare as it likes.
    return type(reduction) is str and reduction in _MEANS


def is_small(shape: Shape) -> bool:
    """True if of a tensor of this shape all numbers may be asked for, at any size of the batch."""
    return shape is not None and math.prod(size or 1 for size in shape[1:]) <= MOST_OF_A_SAMPLE
