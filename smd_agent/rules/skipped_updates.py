"""Updates that a scaler of losses has left out, because gradients were not finite."""

from __future__ import annotations

import re

import numpy as np

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.training_facts import OPTIMIZER, UPDATE
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.step_view import StepView

_SCALE = re.compile(f"^{OPTIMIZER}.+/(scale|loss_scale)$")


def scales_of(step: StepView) -> dict[str, float]:
    """Return by what losses are multiplied, by the name of the tensor that says so."""
    settings = step.numbers(step.names(CollectionKeys.OPTIMIZER))
    return {name: value for name, value in settings.items() if _SCALE.match(name)}


def says_so(scale: str) -> bool:
    """Tell whether a scaler itself says that it has left out an update; of others it has to be concluded."""
    return scale.endswith("/scale")


def has_skipped(step: StepView, scale: str) -> bool:
    """Tell whether a scaler has left out the update of a step, as far as that is known.

    Most say so. Of others it was left out if a gradient is not finite, or if nothing at all has moved, which may have
    other reasons.

    Args:
        step: one at which the scale is known.
        scale: the name of the tensor that has it.
    """
    said = step.numbers(step.names(CollectionKeys.OPTIMIZER)).get(f"{scale.rpartition('/')[0]}/skipped")
    if said is not None or says_so(scale):
        return said == 1
    moves = step.numbers(step.names(patterns=(f"^{UPDATE}",))).values
    return bool(len(moves) and not np.any(moves)) or bool(not_finite(step, step.names(CollectionKeys.GRADIENTS)))


def all_have_skipped(step: StepView) -> bool:
    """Tell whether the gradients of the step were scaled, overflowed, and came to nothing."""
    scales = scales_of(step)
    return bool(scales) and all(has_skipped(step, scale) for scale in scales)
