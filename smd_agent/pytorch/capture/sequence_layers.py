"""Recurrent layers and attention of ``torch.nn``, which the layers of a transformer are made of.

See ``framework.sequence_layers``. A mask of floats is added to the scores: where its smallest number is near 0, it
hides nothing, and is no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.sequence_layers import DIMENSIONS, Given
from smd_agent.framework.sequence_layers import SequenceLayers as AnyLayers
from smd_agent.framework.step_events import LayerCall, StepEnd, on
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.plain_access import own_dict
from smd_agent.pytorch.tracing import is_opaque

_ATTENTION = torch.nn.MultiheadAttention
_LAYERS = (torch.nn.RNNBase, _ATTENTION)
_DECODER = torch.nn.TransformerDecoderLayer
_MASK = 5
# A score less by so much has at least 1/150 of the weight, which training can undo.
_HIDES = -5.0


class SequenceLayers(AnyLayers, domain=INPUTS, doing="looking at layers over sequences"):
    """The layers of one step that is saved."""

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage)
        self._decoding: list[Any] = []

    def given_to(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given | None:
        """Return what a layer is given."""
        if not is_a(layer, _LAYERS):
            return None
        is_attention = is_a(layer, _ATTENTION)
        given: Any = args[0] if args else kwargs.get("query" if is_attention else "input")
        if not is_a(given, torch.Tensor) or given.dim() != DIMENSIONS:
            return None
        facts: dict[str, Any] = {}
        if is_attention and (args[1] if len(args) > 1 else kwargs.get("key")) is given:
            facts = _of_mask(args[_MASK] if len(args) > _MASK else kwargs.get("attn_mask"), kwargs.get("is_causal"))
            if any(layer is one for one in self._decoding):
                facts["decodes"] = 1.0
        return Given(given.shape, own_dict(layer).get("batch_first") is True, facts)

    @on(LayerCall)
    @without_gradients
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called; one of a decoder calls its own attention."""
        if is_a(call.layer, _DECODER):
            self._decoding.append(own_dict(call.layer)["_modules"].get("self_attn"))
        self._look_at(*call)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of the decoders."""
        self._decoding.clear()

    def batch_of(self, inputs: Any) -> int | None:
        """Return the size of the first axis of the first tensor that has several."""
        return next((tensor.shape[0] for tensor in tensors_in(inputs) if tensor.dim() > 1), None)

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is said of a layer."""
        return self.wanted and is_a(layer, (*_LAYERS, _DECODER))


def _of_mask(mask: Any, is_causal: Any) -> dict[str, Any]:
    """The facts of what an attention is told to hide."""
    if mask is None or is_causal is True:
        return {"masked": float(is_causal is True)}
    if not is_a(mask, torch.Tensor) or not mask.is_floating_point() or not has_memory(mask) or is_opaque():
        return {"masked": 1.0}
    least, most = mask.detach().aminmax()
    return {"masked": (least <= _HIDES).to(torch.float32), "mask_min": least, "mask_max": most}
