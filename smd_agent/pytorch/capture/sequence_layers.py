"""Inputs of recurrent layers and attention: which axis they run over, and whether they see what comes later.

``usage/layer/<name>/<fact>``, of the step's first calls of ``RNN``, ``LSTM``, ``GRU`` and ``MultiheadAttention`` of
``torch.nn`` that are trained, which the layers of a transformer are made of:

``axis_0``, ``axis_1``  sizes of the first two axes of the input, of a layer with ``batch_first=False``: time and batch.
``batch``               size of the first axis of what the model is called with.
``length``              how many elements the sequence has that an attention to itself looks at.
``masked``              1 if it is given a mask or is told to be causal, else 0; padding is no such mask.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.domains import INPUTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerCall, ModelCall, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.structure import own_dict

_ATTENTION = torch.nn.MultiheadAttention
_LAYERS = (torch.nn.RNNBase, _ATTENTION)
# Of a deep model the first ones tell as much as all.
_MOST = 8
# With a batch, and features last.
_DIMENSIONS = 3
_MASK = 5


class SequenceLayers(UsageProbe, domain=INPUTS, doing="looking at layers over sequences"):
    """The layers of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._told: set[str] = set()
        self._batch: int | None = None

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called, which may be such a layer itself."""
        self._batch = next((tensor.shape[0] for tensor in tensors_in(call.inputs) if tensor.dim() > 1), None)
        self._look_at(call.name, call.model, *call.inputs)

    @on(LayerCall)
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called."""
        self._look_at(*call)

    def _look_at(self, name: str, layer: Any, args: Any, kwargs: Any) -> None:
        if not is_a(layer, _LAYERS) or name in self._told or len(self._told) == _MOST:
            return
        is_attention = is_a(layer, _ATTENTION)
        given: Any = args[0] if args else kwargs.get("query" if is_attention else "input")
        if not is_a(given, torch.Tensor) or given.dim() != _DIMENSIONS:
            return
        self._told.add(name)
        numbers: dict[str, Any] = {}
        batch_first = own_dict(layer).get("batch_first") is True
        if not batch_first and self._batch is not None:
            numbers |= {"axis_0": given.shape[0], "axis_1": given.shape[1], "batch": self._batch}
        to_itself = is_attention and (args[1] if len(args) > 1 else kwargs.get("key")) is given
        if to_itself:
            mask = args[_MASK] if len(args) > _MASK else kwargs.get("attn_mask")
            masked = mask is not None or kwargs.get("is_causal") is True
            numbers |= {"length": given.shape[1 if batch_first else 0], "masked": float(masked)}
        self._usage.save(f"layer/{name}", numbers)

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is said of a layer."""
        return self.wanted and is_a(layer, _LAYERS)
