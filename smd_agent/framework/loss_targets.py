"""Targets of losses: how many there are.

``usage/target/<loss>_<i>/<fact>``, of the step's first calls of each of the losses that a framework names:

``axis_0``, ``axis_1``  sizes of the first two axes of the target; the second is 1 where there is none.
``elements``            how many elements it has.

Where it has a number for each pixel of the images that the model is given: those of ``flipped_targets``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.flipped_targets import Images
from smd_agent.framework.step_events import LossCall, ModelCall, StepEnd, on
from smd_agent.framework.usage import Usage, UsageProbe

# Of one loss in a step, as those of several heads.
_CALLS = 4
AXES = 2
"""Axes of a target that are looked at."""


class Target(NamedTuple):
    """A target.

    loss: the name of the loss that compares with it.
    values: its array.
    ignored: the label that does not count; None where there is none.
    is_plain: whether each label that is not ignored counts: the loss is reduced, and not weighted.
    """

    loss: str
    values: Any
    ignored: int | None = None
    is_plain: bool = False


class LossTargets(UsageProbe, domain=LOSS_FACTS, doing="looking at the targets of a loss"):
    """The targets of losses of one step that is saved; a framework tells them.

    Args:
        usage: takes the numbers.
        images: remember those that models are given.
    """

    def __init__(self, usage: Usage, images: Images) -> None:
        super().__init__(usage, in_training=True)
        self._images = images
        self._calls: dict[str, int] = {}

    def numbers_in(self, inputs: Any) -> Iterable[Any]:
        """Return the inputs of a model that are floats or integers and can be read."""
        raise NotImplementedError

    def target_of(self, call: LossCall) -> Target | None:
        """Return the target of a loss; None if it is none that is looked at, or cannot be read."""
        raise NotImplementedError

    def compared(self, target: Target) -> dict[str, Any]:
        """Return facts of the elements of a target."""
        return self._images.compared(target.values)

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        self._images.take(self.numbers_in(call.inputs))

    @on(LossCall)
    def look_at(self, call: LossCall) -> None:
        """Save what a call of a loss compares with."""
        found = self.target_of(call)
        if found is None:
            return
        number = self._calls.get(found.loss, 0)
        self._calls[found.loss] = number + 1
        if number >= _CALLS:
            return
        shape = tuple(found.values.shape)
        sizes = (*shape, 1, 1)[:AXES]
        numbers: dict[str, Any] = {"axis_0": sizes[0], "axis_1": sizes[1], "elements": math.prod(shape)}
        self._usage.save(f"target/{found.loss}_{number}", numbers | self.compared(found), here=True)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of what is remembered."""
        self._images.clear()
