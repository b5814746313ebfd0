"""Targets of losses of PyTorch, and whether they are the next tokens of the model's input.

Losses are those that are named below. Beside what ``framework.loss_targets`` has there is, of a target of whole
numbers, where the model has one input of whole numbers with two axes, for each axis ``k`` of that along which the
target may go on, be it flattened or without the first element:

``length_k``    the input's size along it.
``next_k``      the share of targets that are the next element of the input, of those that are looked at: all but those
                below 0, where the next element differs from the one before it.
``compared_k``  how many those are.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.loss_targets import AXES, Target
from smd_agent.framework.loss_targets import LossTargets as AnyTargets
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall, ModelCall, StepEnd, on
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.tracing import graph_task, is_opaque

_LOSSES = (
    *("cross_entropy_loss", "nll_loss", "binary_cross_entropy_loss", "binary_cross_entropy_with_logits_loss"),
    *("mse_loss", "l1_loss", "smooth_l1_loss"),
)
# Of each axis of the input.
_LOOKED_AT = 64


class LossTargets(AnyTargets, domain=LOSS_FACTS, doing="looking at the targets of a loss"):
    """The targets of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage)
        # A copy of a part of what the model was called with last, and its whole shape.
        self._tokens: tuple[torch.Tensor, torch.Size] | None = None

    @on(ModelCall)
    @without_gradients
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        found = [one for one in tensors_in(call.inputs) if one.dim() == AXES and _is_whole(one) and has_memory(one)]
        self._tokens = None
        if len(found) == 1 and not is_opaque():
            self._tokens = found[0][:_LOOKED_AT, :_LOOKED_AT].clone(), found[0].shape

    def target_of(self, call: LossCall) -> Target | None:
        """Return the target of a functional loss."""
        target: Any = call.args[1] if len(call.args) > 1 else call.kwargs.get("target")
        if call.loss not in _LOSSES or not is_a(target, torch.Tensor):
            return None
        can_be_read = graph_task() == -1 and not is_opaque() and has_memory(target)
        return Target(call.loss, target) if can_be_read else None

    @without_gradients
    def compared(self, target: Any) -> dict[str, Any]:
        """Return how many of the targets are the next tokens."""
        numbers: dict[str, Any] = {}
        if self._tokens is not None and _is_whole(target) and target.device == self._tokens[0].device:
            for axis in range(AXES):
                numbers |= _next(*self._tokens, target, axis)
        return numbers

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
    if length < AXES:
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
