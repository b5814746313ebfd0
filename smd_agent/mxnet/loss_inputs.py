"""Inputs of Gluon's losses; see ``framework.loss_facts``.

``usage/loss/<class>_<i>/<fact>``, of the step's first calls of losses that expect logits, probabilities or their
logarithms. A class that a program has derived from one of these may do with labels what it likes, and is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mxnet import autograd
from mxnet.gluon.loss import KLDivLoss, SigmoidBinaryCrossEntropyLoss, SoftmaxCrossEntropyLoss
from mxnet.ndarray import NDArray

from smd_agent.core.domains import LOSS_FACTS
from smd_agent.framework import loss_facts
from smd_agent.framework.loss_facts import Array, Numbers
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall, on
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.mxnet.arrays import plain, to_array

_LOOKED_AT = (SoftmaxCrossEntropyLoss, SigmoidBinaryCrossEntropyLoss, KLDivLoss)


class LossInputs(UsageProbe, domain=LOSS_FACTS, doing="looking at what a loss is given"):
    """The inputs of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage)
        self._calls: dict[str, int] = {}

    @on(LossCall)
    def look_at(self, call: LossCall) -> None:
        """Save what a loss is about to be called with."""
        block = call.loss
        if type(block) not in _LOOKED_AT:
            return
        pred, label, weight = (_plain(one) for one in (*call.args, None, None, None)[:3])
        if not (_is_dense(pred) and _is_dense(label) and pred.size and label.size):
            return
        name = type(block).__name__
        number = self._calls.get(name, 0)
        self._calls[name] = number + 1
        if number < loss_facts.CALLS:
            self._usage.save(f"loss/{name}_{number}", _numbers(block, pred, label, weight))


def _plain(value: Any) -> Any:
    return plain(value) if is_a(value, NDArray) else None


def _is_dense(array: Any) -> bool:
    return is_a(array, NDArray) and array.stype == "default" and bool(array.ndim)


def _numbers(block: Any, pred: NDArray, label: NDArray, weight: Any) -> Numbers:
    if is_a(block, SigmoidBinaryCrossEntropyLoss):
        return {"expects_logits": float(not block._from_sigmoid), **loss_facts.ends(_first_rows(pred))}
    # What Gluon calls logits in these two are logarithms of probabilities.
    logarithms, axis = bool(block._from_logits), block._axis % pred.ndim
    found: Numbers = {"expects_logits": float(not logarithms), "expects_logarithms": float(logarithms)}
    found |= loss_facts.rows(_first_rows(pred), axis, logarithms)
    if is_a(block, SoftmaxCrossEntropyLoss):
        found |= _labels(block, pred, label, weight, axis)
    return found


def _labels(block: Any, pred: NDArray, label: NDArray, weight: Any, axis: int) -> Numbers:
    of_loss = (*pred.shape[:axis], 1, *pred.shape[axis + 1 :])
    if block._sparse_label:
        if label.size != np.prod(of_loss):
            return {}
        target: Array | None = _first_rows(label)
    elif label.shape != pred.shape:
        return {}
    else:
        target = loss_facts.classes_of_one_hot(_first_rows(label), axis)
    if target is None:
        return {}
    kept = None
    if _is_dense(weight) and _fits(weight.shape, of_loss):
        # Where a label does not count, it is often one that there is not.
        kept = np.broadcast_to(to_array(weight)[0] != 0, of_loss).reshape(-1)[: target.size]
    return loss_facts.labels(target.reshape(-1), kept)


def _fits(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether an array of this shape can be broadcast; if not, the loss will fail."""
    return len(shape) == len(whole) and all(size in (1, of) for size, of in zip(shape, whole, strict=True))


def _first_rows(array: NDArray) -> Array:
    """The values; of an array that is large and on an accelerator, its first rows."""
    rows = max(1, LOOKED_AT * array.shape[0] // max(array.size, 1))
    if array.context.device_type != "cpu" and rows < array.shape[0]:
        with autograd.pause(train_mode=autograd.is_training()):
            array = array[: max(rows, 8)]
    return to_array(array)[0]
