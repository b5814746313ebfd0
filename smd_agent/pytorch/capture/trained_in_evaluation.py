"""Models that are trained in evaluation mode: an optimizer updates what a call in that mode has computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from smd_agent.pytorch.model.step_counter import TrackedModule
from smd_agent.pytorch.structure import is_training
from smd_agent.pytorch.updates import ids_of


def trained_in_evaluation(models: Iterable[TrackedModule], optimizer: Any, step: int) -> Iterator[TrackedModule]:
    """Those of the models that were called in evaluation mode in this step, and that the optimizer updates."""
    updated = ids_of(optimizer)
    for tracked in models:
        model = tracked.model
        if model is None or tracked.by_gradients or tracked.last != step or is_training(model):
            continue
        if any(id(parameter) in updated for _, parameter in tracked.parameters()):
            yield tracked
