"""Training that a program does again for ``replay``, up to a step that goes wrong: of it, its operations are watched.

It is for frameworks whose steps leave no bundle. What watches operations is the framework's; it asks here when to, and
tells the makers of what it sees, the loss, and the gradients. Here is nothing of any framework.

In the order of a step::

    if repeated.watches(step):  # before its first operation; the framework watches from here on
        repeated.step_begins(step)
        repeated.makers.comes(...)  # the batch, the weights, as far as they are known
        repeated.makers.saw(...)  # each operation, forward and backward
        repeated.loss_is(loss, number)  # as its backward pass begins
        repeated.gradients_are([...])  # after that
        repeated.step_ends()  # before the update, or after it; it ends the program if this is the step
"""

from __future__ import annotations

import atexit
import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from smd_agent import guard
from smd_agent.core.requests import TrainingStopped
from smd_agent.formats.replays import Order, Replayed, order_of, text_of
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.value_makers import Makers
from smd_agent.storage.atomic_file import replace_file

_WHY = "the training was done again up to this step"
_NAMED = 8


class RepeatedTraining:
    """The one of a process, which ``replay`` has started.

    Args:
        text: of the order, which has no bundle.

    Attributes:
        makers: knows who has made values that are not finite; to be told of the operations of steps that are watched.
        is_over: the step has been found, and the program is to end.
    """

    def __init__(self, text: str) -> None:
        self._order: Order = order_of(text)
        self._result = Replayed()
        # Of gradients of an earlier step, which have spoilt the weights.
        self._earlier = ""
        self._is_told = False
        self.makers = Makers()
        self.is_over = False
        # However the program ends.
        atexit.register(self._tell)

    # What a framework asks and tells.

    def watches(self, step: int) -> bool:
        """True if a training step is one whose operations are watched; asked before they are."""
        return self._order.at <= step and not self.is_over

    @property
    def step(self) -> int:
        """The training step that is watched; -1 before the first."""
        return self._result.step

    @property
    def passed(self) -> bool:
        """True if the loss of that step is known."""
        return self._result.passed

    def step_begins(self, step: int) -> None:
        """A training step that is watched begins."""
        self.makers.forget()
        self.step_is(step)

    def step_is(self, step: int) -> None:
        """This is the step of the operations seen of late, where it is known at their end only."""
        result = self._result
        if not result.reached or result.step != step:
            result.reached, result.step, result.passed, result.broken = True, step, False, []

    def loss_is(self, loss: object, value: float) -> None:
        """A loss is about to be differentiated; of several of one step the first that is not finite counts.

        Args:
            loss: the tensor, as it was among the results of an operation.
            value: its number, or the mean of its numbers.
        """
        result = self._result
        if self.is_over or (result.passed and math.isfinite(value)):
            return
        result.passed, result.loss = True, repr(value)
        if math.isfinite(value):
            return
        maker, result.spoilt = self.makers.maker_of(loss), self.makers.is_of_weights(loss)
        result.maker = self._earlier if self._earlier and (result.spoilt or not maker) else maker
        result.spoilt = result.spoilt and not self._earlier
        self.is_over = True

    def gradients_are(self, bad: Iterable[tuple[str, object]]) -> None:
        """Gradients of the step are there, of which these are not finite: each a name and a tensor."""
        found = [*bad]
        if self.is_over or not found:
            return
        self._result.broken += [name for name, _ in found[:_NAMED]]
        maker = next((words for _, one in found if (words := self.makers.maker_of(one))), "")
        if maker:
            self._earlier = f"the gradients of step {self._result.step}, whose loss is finite: {maker}"

    def step_ends(self) -> None:
        """The step is over.

        Raises:
            TrainingStopped: it is the one that went wrong, or the last that is watched.
        """
        result = self._result
        if not self.is_over and result.reached and result.step >= self._order.until:
            self.is_over = True
            result.maker = self._earlier
        if self.is_over:
            self._tell()
            raise TrainingStopped(result.step, _WHY)

    # How it is done.

    def _tell(self) -> None:
        """Write what is known; the first time counts."""
        error = getattr(sys, "last_value", None)
        if not self.is_over and is_a(error, Exception):
            self._result.error = guard.describe(error)
        path = Path(self._order.result)
        # Another process of the program's, as a loader of data, has nothing to tell.
        is_known = self._result.reached or self._result.error
        if is_known and not self._is_told and os.path.isdir(path.parent):
            self._is_told = True
            replace_file(path.parent, path.name, text_of(self._result).encode())
