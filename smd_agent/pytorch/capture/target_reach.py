"""Ranges of the activations of PyTorch, by the nodes of its graph; see ``framework.target_reach``."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.framework import target_reach
from smd_agent.framework.training_facts import LOOKED_AT

_HARDTANH = "HardtanhBackward0"


def facts(activation: Any, target: torch.Tensor) -> dict[str, Any]:
    """Facts of a target that a prediction is compared with; none where no activation bounds the prediction.

    Args:
        activation: the node of the graph that has made the prediction.
        target: of any shape but an empty one.
    """
    within = range_of(activation)
    if within is None:
        return {}
    part = target.detach().reshape(-1)[:LOOKED_AT].to(torch.float32)
    return target_reach.facts(within, part, lambda outside: outside.to(torch.float32).mean())


def range_of(node: Any) -> target_reach.Range | None:
    """The range of an activation by its node; None of any other node, and of none."""
    if node is None:
        return None
    name = node.name()
    if name == _HARDTANH:
        return target_reach.Range(float(node._saved_min_val), float(node._saved_max_val))
    return target_reach.RANGES.get(name.removesuffix("Backward0").lower())
