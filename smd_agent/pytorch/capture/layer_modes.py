"""Modes of models and layers of PyTorch; see ``framework.layer_modes``."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from smd_agent.core.failure_domains import MODES
from smd_agent.framework.layer_modes import LayerModes as AnyModes
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import ModelCall, on
from smd_agent.pytorch.plain_access import held, is_training, own_dict, parts


class LayerModes(AnyModes, domain=MODES, doing="looking at the modes of layers"):
    """The modes of one step that is saved."""

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """Save the modes of a model that is about to be called."""
        if call.model is not None:
            self.save(call.name, call.model)

    def modes_of(self, model: torch.nn.Module) -> Modes:
        """Return the modes of a module."""
        layers = parts(model)
        dropping = [(is_training(layer), share) for layer in layers if (share := _dropped(layer)) > 0]
        return Modes(is_training(model), dropping, [is_training(layer) for layer in layers if _has_statistics(layer)])


def _dropped(layer: torch.nn.Module) -> float:
    """The share of its input that a layer drops; 0 for one that is no dropout."""
    own = own_dict(layer)
    if is_a(layer, torch.nn.RNNBase):
        # Between its layers, so that of one there is none.
        return _number(own.get("dropout")) if _number(own.get("num_layers")) > 1 else 0.0
    if is_a(layer, torch.nn.MultiheadAttention):
        return _number(own.get("dropout"))
    return _number(own.get("p")) if is_a(layer, _DropoutNd) else 0.0


def _number(value: object) -> float:
    return float(value) if type(value) in (float, int) else 0.0  # type: ignore[arg-type]


def _has_statistics(layer: torch.nn.Module) -> bool:
    return is_a(layer, _NormBase) and any(name == "running_mean" for name, _ in held(layer, "_buffers"))
