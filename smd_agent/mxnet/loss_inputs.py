"""Inputs and labels of Gluon's losses; see ``framework.loss_facts``.

``usage/loss/<class>_<i>/<fact>``, of the step's first calls of losses that expect logits, probabilities or their
logarithms; of losses of numbers, see ``framework.target_reach``, where the prediction comes from an activation. A class
that a program has derived from one of these may do with labels what it likes, and is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from mxnet import autograd
from mxnet.gluon.loss import (
    HuberLoss,
    KLDivLoss,
    L1Loss,
    L2Loss,
    SigmoidBinaryCrossEntropyLoss,
    SoftmaxCrossEntropyLoss,
)
from mxnet.ndarray import NDArray

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework import loss_facts, target_reach
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import AfterBackward, LayerReturn, LossCall, StepEnd, on
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.mxnet.activations import Origin, Origins
from smd_agent.mxnet.arrays import plain, to_array

_OF_NUMBERS = (L2Loss, L1Loss, HuberLoss)
_LOOKED_AT = (SoftmaxCrossEntropyLoss, SigmoidBinaryCrossEntropyLoss, KLDivLoss, *_OF_NUMBERS)
# Arguments of a call without weights.
_UNWEIGHTED = 2


class LossInputs(UsageProbe, domain=LOSS_FACTS, doing="looking at what a loss is given"):
    """The inputs of losses of one step that is saved.

    Args:
        usage: takes the numbers.
        guesses: has the labels of the steps before.
    """

    def __init__(self, usage: Usage, guesses: LossGuesses) -> None:
        super().__init__(usage)
        self._guesses = guesses
        self._calls: dict[str, int] = {}
        self._origins = Origins()

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """A block of a model has returned what a loss may be given."""
        if autograd.is_recording():
            self._origins.add(call.layer, call.outputs)

    @on(AfterBackward, StepEnd)
    def forget(self, _: object) -> None:
        """There are no graphs any more."""
        self._origins.forget()

    @on(LossCall)
    def look_at(self, call: LossCall) -> None:
        """Save what a loss was called with, and what it has returned."""
        block = call.loss
        if type(block) not in _LOOKED_AT:
            return
        pred, label, weight = (_plain(one) for one in (*call.args, None, None, None)[:3])
        if not (_is_dense(pred) and _is_dense(label) and pred.size and label.size):
            return
        name = type(block).__name__
        number = self._calls.get(name, 0)
        self._calls[name] = number + 1
        if number >= loss_facts.CALLS:
            return
        name = f"{name}_{number}"
        if is_a(block, _OF_NUMBERS):
            self._usage.save(f"loss/{name}", self._of_numbers(call), here=True)
            return
        # What it returns is of each sample, the mean over its labels.
        has_weights = block._weight is not None or _are_given(call)
        result = None if has_weights or not self._usage.wanted_in_training else _plain(call.value)
        found, guess = _look(block, pred, label, weight)
        found |= self._activated(block, call.args[0], bool(found["expects_logits"]))
        if guess is not None and result is not None:
            found["loss"] = float(to_array(result)[0].mean())
            found |= guess(self._guesses, name)
        self._usage.save(f"loss/{name}", found, here=True)

    def _activated(self, block: Any, pred: NDArray, applies: bool) -> Numbers:
        """Facts of the activation that has returned the input; ``applies``: the loss applies one itself."""
        origin = self._origins.of(pred)
        if origin is None:
            return {}
        is_binary = is_a(block, SigmoidBinaryCrossEntropyLoss)
        activated = origin.has_been_through("sigmoid" if is_binary else "softmax") if applies else None
        return {**({} if activated is None else {"activated": float(activated)}), **_softmax_over(origin, pred)}

    def _of_numbers(self, call: LossCall) -> Numbers:
        # Some give the two in the other order, which is the same loss.
        for pred, label in (call.args[:2], call.args[1::-1]):
            origin = self._origins.of(pred)
            # What an operation was recorded with has a graph too, of a variable.
            if origin is None or not origin.operations:
                continue
            numbers, within = _softmax_over(origin, pred), origin.within()
            if within is not None and not _are_given(call):
                # Those of weight 0 may be anything.
                part = _first_rows(_plain(label)).reshape(-1)[:LOOKED_AT].astype(np.float32)
                numbers |= target_reach.facts(within, part, np.mean)
            return numbers
        return {}


def _are_given(call: LossCall) -> bool:
    """True if a loss is given weights."""
    return len(call.args) + len(call.kwargs) > _UNWEIGHTED


def _softmax_over(origin: Origin, pred: NDArray) -> Numbers:
    axis = origin.softmax_axis()
    return {} if axis is None else {"softmax_over": plain(pred).shape[axis]}


def _plain(value: Any) -> Any:
    return plain(value) if is_a(value, NDArray) else None


def _is_dense(array: Any) -> bool:
    return is_a(array, NDArray) and array.stype == "default" and bool(array.ndim)


Found: TypeAlias = tuple[Numbers, Callable[[LossGuesses, str], Numbers] | None]
"""The facts of a call, and what gives those that take the labels of the calls before it."""


def _look(block: Any, pred: NDArray, label: NDArray, weight: Any) -> Found:
    if is_a(block, SigmoidBinaryCrossEntropyLoss):
        return _of_yes_and_no(block, pred, label)
    return _of_classes(block, pred, label, weight)


def _of_yes_and_no(block: Any, pred: NDArray, label: NDArray) -> Found:
    numbers = {"expects_logits": float(not block._from_sigmoid), **loss_facts.ends(_first_rows(pred))}
    rows = loss_facts.columns(_first_rows(label))
    is_known = bool(((rows >= 0) & (rows <= 1)).all())
    return numbers, (lambda guesses, name: guesses.of_yes_and_no(name, rows)) if is_known else None


def _of_classes(block: Any, pred: NDArray, label: NDArray, weight: Any) -> Found:
    # What Gluon calls logits in these two are logarithms of probabilities.
    logarithms, axis = bool(block._from_logits), block._axis % pred.ndim
    numbers = {"expects_logits": float(not logarithms), "expects_logarithms": float(logarithms)}
    numbers |= loss_facts.rows(_first_rows(pred), axis, logarithms)
    target, kept = _labels(block, pred, label, weight, axis) if is_a(block, SoftmaxCrossEntropyLoss) else (None, None)
    counts = None if target is None else loss_facts.counted(target, kept, classes=pred.shape[axis])
    if counts is None:
        return numbers, None
    numbers |= counts.facts(label.shape[1] if label.ndim == 2 and block._sparse_label else None)
    if counts.counts is None or not counts.counts.any():
        return numbers, None
    found = counts.counts, counts.size
    return numbers, lambda guesses, name: guesses.of_classes(name, *found)


def _labels(block: Any, pred: NDArray, label: NDArray, weight: Any, axis: int) -> tuple[Array | None, Array | None]:
    """The labels of a loss of classes, None where they are not known; and which of them count, None for all."""
    of_loss = (*pred.shape[:axis], 1, *pred.shape[axis + 1 :])
    if block._sparse_label:
        if label.size != np.prod(of_loss):
            return None, None
        target: Array | None = _first_rows(label)
    elif label.shape != pred.shape:
        return None, None
    else:
        target = loss_facts.classes_of_one_hot(_first_rows(label), axis)
    kept = None
    if target is not None and _is_dense(weight) and _fits(weight.shape, of_loss):
        # Where a label does not count, it is often one that there is not.
        kept = np.broadcast_to(to_array(weight)[0] != 0, of_loss).reshape(-1)[: target.size]
    return target, kept


def _fits(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """True if an array of this shape can be broadcast; if not, the loss will fail."""
    return len(shape) == len(whole) and all(size in (1, of) for size, of in zip(shape, whole, strict=True))


def _first_rows(array: NDArray) -> Array:
    """The values; of an array that is large and on an accelerator, its first rows."""
    rows = max(1, LOOKED_AT * array.shape[0] // max(array.size, 1))
    if array.context.device_type != "cpu" and rows < array.shape[0]:
        with autograd.pause(train_mode=autograd.is_training()):
            array = array[: max(rows, 8)]
    return to_array(array)[0]
