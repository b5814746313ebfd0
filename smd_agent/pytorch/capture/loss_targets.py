"""Targets of losses of PyTorch, and how they are shifted against the tokens that the model is given.

Losses are those that are named below. Beside what ``framework.loss_targets`` has there is, of a target of whole
numbers, where the model has one sequence of tokens (``capture.token_offsets``), for each axis ``k`` of that along which
the target may go on, be it flattened or without the first or the first two elements:

``length_k``    the input's size along it.
``next_k``      the share of targets that are the next element of the input, of those that are looked at: all but those
                that are ignored or below 0, where the next element differs from the one before it.
``compared_k``  how many those are.
``same_k``      the share of targets that are the element of the same place, of those at three elements of the input
                that differ from each other, without those that are ignored or below 0.
``second_k``    the share of them that are the element after the next one.
``distinct_k``  how many those are.
``padded_k``    how many rows are padded (``capture.token_padding``), all by the same token; of up to 64 rows, of which
                the last 256 elements are looked at. Not of a loss that weighs classes or is not reduced.
``padding_k``   how many of their elements go from padding to padding.
``padding_counts_k``  the share of these whose target counts: it is neither ignored nor below 0.
``end_counts_k``      the share of padded rows in which the first element of the padding is such a target.
``same_end_k``        1 if the element before the padding is the same in all of them, else 0.
``padding_ends_k``    of a model of transformers: 1 if each row ends in the token that ends sequences by the model's
                      configuration, the longest row in a single one; else 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.flipped_targets import Images
from smd_agent.framework.loss_targets import LossTargets as AnyTargets
from smd_agent.framework.loss_targets import Target
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall, ModelCall, StepEnd, on
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, numbers_in
from smd_agent.pytorch.capture.target_copies import Tables
from smd_agent.pytorch.capture.token_offsets import Sequences, is_whole
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.tracing import graph_task, is_opaque

_OF_CLASSES = ("cross_entropy_loss", "nll_loss")
_WEIGHT, _REDUCTION, _IGNORE_INDEX = 2, 3, 4
_EACH = 0
_LOSSES = (
    *_OF_CLASSES,
    *("binary_cross_entropy_loss", "binary_cross_entropy_with_logits_loss"),
    *("mse_loss", "l1_loss", "smooth_l1_loss"),
)


class LossTargets(AnyTargets, domain=LOSS_FACTS, doing="looking at the targets of a loss"):
    """The targets of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, Images(_as_floats, torch))
        self._sequences = Sequences()
        self._tables = Tables()

    @on(ModelCall)
    @without_gradients
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        self._forget()
        if not is_opaque():
            self._sequences.take(call.model, call.inputs)
            self._tables.take(call.inputs)
            super().before_call(call)

    def numbers_in(self, inputs: Any) -> Iterator[torch.Tensor]:
        """Return the inputs of a model that have numbers."""
        return numbers_in(inputs)

    def target_of(self, call: LossCall) -> Target | None:
        """Return the target of a functional loss."""
        target: Any = call.args[1] if len(call.args) > 1 else call.kwargs.get("target")
        if call.loss not in _LOSSES or not is_a(target, torch.Tensor):
            return None
        can_be_read = graph_task() == -1 and not is_opaque() and has_memory(target)
        if not can_be_read:
            return None
        if call.loss not in _OF_CLASSES:
            return Target(call.loss, target)
        ignored = _argument(call, _IGNORE_INDEX, "ignore_index")
        is_plain = _argument(call, _WEIGHT, "weight") is None and _argument(call, _REDUCTION, "reduction") != _EACH
        return Target(call.loss, target, ignored if type(ignored) is int else None, is_plain)

    @without_gradients
    def compared(self, target: Target) -> dict[str, Any]:
        """Return how near targets are to a column or the images of the input, and how many are tokens of it."""
        values: torch.Tensor = target.values
        found = self._tables.compared(values)
        images, has_numbers = self._images.looked_at, not values.requires_grad and not values.is_complex()
        if images is not None and has_numbers and images.device == values.device:
            found |= super().compared(target)
        return found | (self._sequences.compared(target) if is_whole(values) else {})

    @on(StepEnd)
    def close(self, end: StepEnd) -> None:
        """Let go of what is remembered."""
        super().close(end)
        self._forget()

    def _forget(self) -> None:
        self._sequences.clear()
        self._tables.clear()


def _as_floats(part: torch.Tensor) -> torch.Tensor:
    return part.to(torch.float32, copy=True)


def _argument(call: LossCall, place: int, name: str) -> Any:
    """An argument of a loss of classes; None where it is not given."""
    return call.args[place] if len(call.args) > place else call.kwargs.get(name)
