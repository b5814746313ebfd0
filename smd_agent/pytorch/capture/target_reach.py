"""Targets out of reach: whether an activation before a loss of numbers lets the prediction reach its target."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from smd_agent.framework.training_facts import LOOKED_AT

# Nodes of activations, and the range of what they return.
_RANGES = {
    "SigmoidBackward0": (0.0, 1.0),
    "HardsigmoidBackward0": (0.0, 1.0),
    "SoftmaxBackward0": (0.0, 1.0),
    "TanhBackward0": (-1.0, 1.0),
    "ReluBackward0": (0.0, math.inf),
    "SoftplusBackward0": (0.0, math.inf),
    "ExpBackward0": (0.0, math.inf),
    "LogSigmoidBackward0": (-math.inf, 0.0),
    "LogSoftmaxBackward0": (-math.inf, 0.0),
}
_HARDTANH = "HardtanhBackward0"
# What a target may be beyond an end of the range, beside rounding: a part of the end, or of 1.
_ROUNDING = 1e-3


class _Range(NamedTuple):
    """The smallest and largest value that an activation can return; infinite where there is none."""

    least: float
    most: float


def facts(activation: Any, target: torch.Tensor) -> dict[str, Any]:
    """Facts of a target that a prediction is compared with; none where no activation bounds the prediction.

    Args:
        activation: the node of the graph that has made the prediction.
        target: of any shape but an empty one.

    Returns:
        ``reach_min``, ``reach_max``: the ends of the activation's range, as far as it has them; ``target_min``,
        ``target_max``; ``out_of_reach``: the share of targets outside of the range.
    """
    within = None if activation is None else _range_of(activation)
    if within is None:
        return {}
    part = target.detach().reshape(-1)[:LOOKED_AT].to(torch.float32)
    low = within.least - _ROUNDING * max(abs(within.least), 1)
    high = within.most + _ROUNDING * max(abs(within.most), 1)
    ends = {"reach_min": within.least, "reach_max": within.most}
    return {
        **{name: end for name, end in ends.items() if not math.isinf(end)},
        "target_min": part.amin(),
        "target_max": part.amax(),
        "out_of_reach": ((part < low) | (part > high)).to(torch.float32).mean(),
    }


def _range_of(node: Any) -> _Range | None:
    name = node.name()
    if name == _HARDTANH:
        return _Range(float(node._saved_min_val), float(node._saved_max_val))
    return _Range(*_RANGES[name]) if name in _RANGES else None
