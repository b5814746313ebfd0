"""A look at the weights when the program ends, after steps that were not saved: whether they are finite.

A loss that is NaN makes the gradients NaN, and the update the weights, all of those that are trained. So a few small
parameters of each model tell whether a training has broken since its last saved step. What they share their memory with
is kept until the end, when the model may be gone. A step that is not saved has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.framework.step_events import NewParameters, Probe, on
from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.model.tracked_module import TrackedModule

Pair = tuple[str, torch.Tensor]

# Parameters that are kept of a model: those that are used last, near the loss.
_KEPT = 8
_AMONG = 64
_LARGEST = 1 << 16


class LastWeights(Probe, domain=WEIGHTS, doing="keeping weights for the end"):
    """A few small parameters of each model of a run; it looks at all of its saved steps."""

    def __init__(self) -> None:
        self._kept: dict[TrackedModule, list[Pair]] = {}

    @on(NewParameters)
    def keep(self, new: NewParameters) -> None:
        """Take note of the parameters of a model; one that is gone by now, as of an earlier fold, does not count."""
        self._kept = {other: kept for other, kept in self._kept.items() if other.model is not None}
        chosen = [(name, parameter) for name, parameter in new.pairs[-_AMONG:] if _can_be_kept(parameter)][-_KEPT:]
        self._kept[new.model] = [(name, parameter.detach()) for name, parameter in chosen]

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
