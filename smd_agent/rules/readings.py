"""Readings of a step that rules share.

They are tensors that are not finite, what models were called with, parameters as the collection ``parameters`` tells of
them (trained, frozen, forgotten), scalers of losses, and the activity of a layer's units: seen in its values, or in
statistics of them.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.unusual_tensors import all_finite
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.training_facts import OPTIMIZER, PARAMETERS, UPDATE
from smd_agent.rules.step_view import Names, StepView

_HALVINGS = 50


def activity(active: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return for each unit the percentage of its elements that are active.

    Args:
        active: which elements of a layer's values are. The units lie along the second axis, of three along the last
            one: (batch, units), (batch, tokens, units), (batch, units, height, width). Of one axis they are its own.

    Returns:
        float64 of shape ``(units,)``.
    """
    axis = {0: None, 1: 0, 3: 2}.get(active.ndim, 1)
    if axis is None:
        return np.array([100.0 * bool(active)])
    others = tuple(place for place in range(active.ndim) if place != axis)
    found: npt.NDArray[np.float64] = 100.0 * np.count_nonzero(active, others) / (active.size // active.shape[axis])
    return found


def dead_beyond_chance(dead: float, zeros: float, count: int) -> float:
    """Return which share of a layer's units is dead, where others are 0 throughout a small batch by chance.

    The units that live are taken to be 0 with the same probability p. So of dead ones d, ``zeros`` is d + (1 - d) p and
    ``dead`` is d + (1 - d) p**count, which is solved for d.

    Args:
        dead: share of units that are 0 throughout.
        zeros: share of elements that are 0.
        count: elements of each unit; with fewer than there are, the result is less.
    """
    if zeros >= 1:
        return 1.0
    # 1 + p + ... + p**(count - 1), which grows with p.
    wanted = (1 - dead) / (1 - zeros)
    if wanted >= count:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (1 - middle**count) / (1 - middle) < wanted:
            low = middle
        else:
            high = middle
    return max(1 - (1 - zeros) / (1 - low), 0.0)


# An element that is not finite makes these so, too. The first that is known of a tensor is looked at.
_TELLING = ("", "abs_mean", "l2", "l1", "std", "mean")
_COUNTS = ("nan_count", "inf_count")
_FURTHER = (*_COUNTS, "min", "max")


def not_finite(step: StepView, names: Names) -> dict[str, dict[str, float]]:
    """Return the tensors with elements that are not finite, each with what is known of nan_count and inf_count."""
    left, suspicious = names, []
    for statistic in _TELLING:
        if not left:
            break
        column = step.column(statistic, left)
        suspicious += [column.names[place] for place in np.flatnonzero(~np.isfinite(column.values)).tolist()]
        if len(column.names) == len(left):
            left = ()
        elif column.names:
            left = step.without(left, column.names)
    known: dict[str, dict[str, float]] = {name: {} for name in (*suspicious, *left)}
    # At once for all of them: at the next steps they are the same ones.
    for statistic in (*_TELLING, *_FURTHER) if known else ():
        for name, value in step.column(statistic, tuple(known)).items():
            known[name][statistic] = value
    return {
        name: {count: numbers[count] for count in _COUNTS if count in numbers}
        for name, numbers in known.items()
        if not all_finite(numbers)
    }


_INPUT = "_input_[0-9]+$"


def model_inputs(step: StepView) -> list[str]:
    """Return what the models were called with; the names of their parameters and inputs begin with the model's."""
    weights = step.names(CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
    models = {name.partition("_")[0] for name in weights}
    named = [name for name in step.names(patterns=(_INPUT,)) if name.rpartition("_input_")[0] in models]
    return [*named, *step.names(CollectionKeys.INPUTS)]


class Fact(NamedTuple):
    """The facts of a parameter.

    requires_grad: whether it can be trained.
    optimizer: which optimizer has it, with its group, such as ``AdamW/group_0``; None if no one was given it.
    gradient: whether it had one when the optimizer updated.
    registered: whether the model knows of it; else it holds it in a plain list or dict.
    """

    requires_grad: bool
    optimizer: str | None
    gradient: bool
    registered: bool = True


def known_parameters(step: StepView) -> dict[str, dict[str, Fact]]:
    """Return what a step says of parameters, by model and by the names that their values have."""
    found = {}
    for name in step.names(CollectionKeys.PARAMETERS):
        facts = _parsed(str(single(step, name)))
        if facts is not None:
            found[name.removeprefix(PARAMETERS)] = facts
    return found


def single(step: StepView, name: str) -> Any:
    """Return the element of a tensor that has one, such as a text; None of others."""
    value = step.value(name)
    return value.reshape(-1)[0] if value is not None and value.size == 1 else None


def first_inputs(step: StepView) -> dict[str, int]:
    """Return the digests of the first inputs of models, by the names of the tensors that have them."""
    names = [name for name in step.names(CollectionKeys.INPUT_DIGESTS) if name.endswith("_0")]
    return {name: int(digest) for name in names if (digest := single(step, name)) is not None}


def _parsed(text: str) -> dict[str, Fact] | None:
    try:
        told = json.loads(text)
        return {
            str(name): Fact(
                bool(one["requires_grad"]), one["optimizer"], bool(one["gradient"]), bool(one.get("registered", True))
            )
            for name, one in told.items()
        }
    except (ValueError, AttributeError, KeyError, TypeError):
        return None


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

    PyTorch's says so. Of others it was left out if a gradient is not finite, or if nothing at all has moved, which may
    have other reasons.

    Args:
        step: one at which the scale is known.
        scale: the name of the tensor that has it.
    """
    if says_so(scale):
        said = scale.removesuffix("/scale") + "/skipped"
        return step.numbers(step.names(CollectionKeys.OPTIMIZER)).get(said) == 1
    moves = step.numbers(step.names(patterns=(f"^{UPDATE}",))).values
    return bool(len(moves) and not np.any(moves)) or bool(not_finite(step, step.names(CollectionKeys.GRADIENTS)))


def all_have_skipped(step: StepView) -> bool:
    """Tell whether the gradients of the step were scaled, overflowed, and came to nothing."""
    scales = scales_of(step)
    return bool(scales) and all(has_skipped(step, scale) for scale in scales)
