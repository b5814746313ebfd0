"""Recurrent layers and attention of ``torch.nn``, which the layers of a transformer are made of.

See ``framework.sequence_layers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from smd_agent.framework.plain_access import is_a
from smd_agent.framework.sequence_layers import DIMENSIONS, Given
from smd_agent.framework.sequence_layers import SequenceLayers as AnyLayers
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.plain_access import own_dict

_ATTENTION = torch.nn.MultiheadAttention
_LAYERS = (torch.nn.RNNBase, _ATTENTION)
_MASK = 5


class SequenceLayers(AnyLayers):
    """The layers of one step that is saved."""

    def given_to(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given | None:
        """Return what a layer is given."""
        if not is_a(layer, _LAYERS):
            return None
        is_attention = is_a(layer, _ATTENTION)
        given: Any = args[0] if args else kwargs.get("query" if is_attention else "input")
        if not is_a(given, torch.Tensor) or given.dim() != DIMENSIONS:
            return None
        masked = None
        if is_attention and (args[1] if len(args) > 1 else kwargs.get("key")) is given:
            mask = args[_MASK] if len(args) > _MASK else kwargs.get("attn_mask")
            masked = mask is not None or kwargs.get("is_causal") is True
        return Given(given.shape, own_dict(layer).get("batch_first") is True, masked)

    def batch_of(self, inputs: Any) -> int | None:
        """Return the size of the first axis of the first tensor that has several."""
        return next((tensor.shape[0] for tensor in tensors_in(inputs) if tensor.dim() > 1), None)

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is said of a layer."""
        return self.wanted and is_a(layer, _LAYERS)
