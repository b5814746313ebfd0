"""Layers whose inputs and outputs cannot be watched without changing what they compute or how they are compiled."""

from __future__ import annotations

import torch

from smd_agent.guard import say_once
from smd_agent.pytorch.root import SLOT, Root, RootCall
from smd_agent.pytorch.wrappers import COMPILED, unwrapped


def hidden_layers(root: Root) -> set[torch.nn.Module]:
    """The layers of a model that must be left alone; one line says so for each reason."""
    module = root.module
    if module is None:
        return set()
    model = unwrapped(module)
    layers = set(model.modules())
    if type(module).__name__ == COMPILED or any(_is_compiled(layer) for layer in layers):
        _tell(root, "they are inside a compiled region")
        return layers
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in layers):
        _tell(root, "they are TorchScript")
        return layers
    # In evaluation this layer takes a faster path, with other rounding, unless it or a part of it has hooks.
    encoders = [layer for layer in layers if isinstance(layer, torch.nn.TransformerEncoderLayer) and not layer.training]
    if encoders:
        _tell(root, "in evaluation a TransformerEncoderLayer computes differently when it is watched")
    return {part for encoder in encoders for part in encoder.modules()}


def _tell(root: Root, reason: str) -> None:
    line = f"inputs and outputs of some layers of {root.name} are not saved: {reason}; weights and losses are"
    say_once(("hidden layers", reason), line)


def _is_compiled(layer: torch.nn.Module) -> bool:
    if type(layer).__name__ == COMPILED:
        return True
    call = layer.__dict__.get(SLOT)
    previous = call.previous if isinstance(call, RootCall) else call
    return previous is not None or hasattr(layer.forward, "_torchdynamo_orig_callable")
