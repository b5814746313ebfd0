"""Targets of losses: how many there are, and whether they are the next tokens of the model's input.

``usage/target/<function>_<i>/<fact>``, of the step's first calls of each of the losses that are named below:

``axis_0``, ``axis_1``  sizes of the first two axes of the target; the second is 1 where there is none.
``elements``            how many elements it has.

Of a target of whole numbers, where the model has one input of whole numbers with two axes, for each axis ``k`` of that
along which the target may go on, be it flattened or without the first element:

``length_k``    the input's size along it.
``next_k``      the share of targets that are the next element of the input, of those that are looked at: all but those
                below 0, where the next element differs from the one before it.
``compared_k``  how many those are.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.domains import LOSS_FACTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall, ModelCall, StepEnd, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.tracing import graph_task, is_opaque

_LOSSES = (
    *("cross_entropy_loss", "nll_loss", "binary_cross_entropy_loss", "binary_cross_entropy_with_logits_loss"),
    *("mse_loss", "l1_loss", "smooth_l1_loss"),
)
# Calls of one function in a step, as the losses of several heads.
_CALLS = 4
# Of each axis of the input.
_LOOKED_AT = 64
_AXES = 2


class LossTargets(UsageProbe, domain=LOSS_FACTS, doing="looking at the targets of a loss"):
    """The targets of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._calls: dict[str, int] = {}
        # A copy of a part of what the model was called with last, and its whole shape.
        self._tokens: tuple[torch.Tensor, torch.Size] | None = None

    @on(ModelCall)
    @without_gradients
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        found = [one for one in tensors_in(call.inputs) if one.dim() == _AXES and _is_whole(one) and has_memory(one)]
        self._tokens = None
        if len(found) == 1 and not is_opaque():
            self._tokens = found[0][:_LOOKED_AT, :_LOOKED_AT].clone(), found[0].shape

    @on(LossCall)
    @without_gradients
    def look_at(self, call: LossCall) -> None:
        """Save what a call of a functional loss compares with."""
        function = call.loss
        if function not in _LOSSES:
            return
        target: Any = call.args[1] if len(call.args) > 1 else call.kwargs.get("target")
        if not is_a(target, torch.Tensor) or graph_task() != -1 or is_opaque() or not has_memory(target):
            return
        number = self._calls.get(function, 0)
        self._calls[function] = number + 1
        if number >= _CALLS:
            return
        sizes = (*target.shape, 1, 1)[:_AXES]
        numbers: dict[str, Any] = {"axis_0": sizes[0], "axis_1": sizes[1], "elements": target.numel()}
        if self._tokens is not None and _is_whole(target) and target.device == self._tokens[0].device:
            for axis in range(_AXES):
                numbers |= _next(*self._tokens, target, axis)
        self._usage.save(f"target/{function}_{number}", numbers)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of what is remembered."""
        self._tokens = None


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def _next(tokens: torch.Tensor, shape: torch.Size, target: torch.Tensor, axis: int) -> dict[str, Any]:
    """The facts of one axis; none where the target has another size."""
    length = shape[axis]
    shorter = [*shape]
    shorter[axis] -= 1
    if length < _AXES:
        return {}
    if target.numel() == shape.numel():
        whole = target.reshape(shape).narrow(axis, 0, length - 1)
    elif target.numel() == shorter[0] * shorter[1]:
        whole = target.reshape(shorter)
    else:
        return {}
    known = tokens.shape[axis] - 1
    later, before = tokens.narrow(axis, 1, known), tokens.narrow(axis, 0, known)
    targets = whole[: later.shape[0], : later.shape[1]]
    compared = (later != before) & (targets >= 0)
    count = compared.sum()
    right = ((targets == later) & compared).sum()
    return {f"length_{axis}": length, f"next_{axis}": right / count.clamp(min=1), f"compared_{axis}": count}
