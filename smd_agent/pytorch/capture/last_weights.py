"""A look at the weights when the program ends, after steps that were not saved: whether they are finite.

A loss that is NaN makes the gradients NaN, and the update the weights, all of those that are trained. So a few small
parameters of each model tell whether a training has broken since its last saved step. What they share their memory with
is kept until the end, when the model may be gone. A step that is not saved has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.model.step_counter import TrackedModule

Pair = tuple[str, torch.Tensor]

# Parameters that are kept of a model: those that are used last, near the loss.
_KEPT = 8
_AMONG = 64
_LARGEST = 1 << 16


class LastWeights:
    """A few small parameters of each model of a run."""

    def __init__(self) -> None:
        self._kept: dict[TrackedModule, list[Pair]] = {}

    def keep(self, tracked: TrackedModule, pairs: Sequence[Pair]) -> None:
        """Take note of the parameters of a model that is saved.

        Args:
            tracked: the model; another one that is gone by now, such as one of an earlier fold, does not count.
            pairs: its parameters by name.
        """
        self._kept = {other: kept for other, kept in self._kept.items() if other.model is not None}
        chosen = [(name, parameter) for name, parameter in pairs[-_AMONG:] if _can_be_kept(parameter)][-_KEPT:]
        self._kept[tracked] = [(name, parameter.detach()) for name, parameter in chosen]

    def not_finite(self) -> Iterator[Pair]:
        """Yield those that are not finite now."""
        for kept in self._kept.values():
            for name, values in kept:
                # Its memory may have been given back under it, as sharded models do.
                whole = values.untyped_storage().nbytes() >= values.numel() * values.element_size()
                if whole and not bool(torch.isfinite(values).all()):
                    yield name, values


def _can_be_kept(parameter: torch.Tensor) -> bool:
    return (
        type(parameter) in PLAIN_CLASSES
        and parameter.requires_grad
        and parameter.layout is torch.strided
        and parameter.dtype.is_floating_point
        and not parameter.is_meta
        and parameter.numel() * parameter.element_size() <= _LARGEST
    )
