"""Wrappers around models, and what a model's parts are called without them.

``DistributedDataParallel``, ``torch.compile`` and their like are modules that hold one other module. Wherever they
stand, around the model or around a part of it, names are those the program would see had it not wrapped anything.
"""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Iterator

import torch

from smd_agent.pytorch.model.fsdp import stand_ins

Layers = list[tuple[str, torch.nn.Module]]
"""Modules below a model with the names that their inputs and outputs are saved under."""

COMPILED = "OptimizedModule"

_INSIDE = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    COMPILED: "_orig_mod",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "_FabricModule": "_forward_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
}
_MADE_FROM = ("FSDP", "Parametrized", "Replicate")
_SCRIPT = torch.jit.ScriptModule
_attributes: dict[type, str] = {}
_installed: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def wrapper_chain(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The module and, as long as it is a wrapper around one model, what it wraps."""
    while True:
        yield module
        attribute = _attribute_of(type(module))
        inner = getattr(module, attribute, None) if attribute else _wrapped_by_library(module)
        if not isinstance(inner, torch.nn.Module):
            return
        module = inner


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside of all wrappers, whose names the user knows."""
    *_, inner = wrapper_chain(module)
    return inner


def class_name(module: torch.nn.Module) -> str:
    """The name of the class that the program gave the module, not that of one made from it while it runs."""
    module = unwrapped(module)
    if isinstance(module, _SCRIPT):
        return str(getattr(module, "original_name", type(module).__name__))
    name = type(module).__name__
    for base in type(module).__mro__[1:]:
        if name.removesuffix(base.__name__) in _MADE_FROM:
            return base.__name__
    return name


def named_layers(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The model and the modules below it by their names, each once; the model's own name is empty."""
    yield from _walk("", module, set())


def named_parameters(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The model's parameters by their names, each once.

    While ``torch.func.functional_call`` runs the model these are the tensors that it was given.
    """
    seen: set[int] = set()
    instead = stand_ins(module)
    for prefix, layer in named_layers(module):
        for name, parameter in layer.named_parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{prefix}.{name}" if prefix else name, instead.get(id(parameter), parameter)


def covering_child(module: torch.nn.Module) -> torch.nn.Module | None:
    """The one child that holds all of the model's parameters, so that calling it is calling the model."""
    own = {id(parameter) for parameter in module.parameters()}
    if not own:
        return None
    for child in module.children():
        if {id(parameter) for parameter in child.parameters()} == own:
            return child
    return None


def _walk(prefix: str, module: torch.nn.Module, seen: set[int]) -> Iterator[tuple[str, torch.nn.Module]]:
    module = unwrapped(module)
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, child in module.named_children():
        yield from _walk(f"{prefix}.{name}" if prefix else name, child, seen)


def _wrapped_by_library(module: torch.nn.Module) -> torch.nn.Module | None:
    """The one module that a class of an installed library keeps to itself, beside nothing of its own."""
    parts = module._modules
    if len(parts) != 1 or module._parameters or module._buffers or not _is_installed(type(module)):
        return None
    ((name, inner),) = parts.items()
    return inner if name.startswith("_") else None


def _is_installed(kind: type) -> bool:
    known = _installed.get(kind)
    if known is None:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        folders = re.split(r"[\\/]", file)
        known = not {"site-packages", "dist-packages"}.isdisjoint(folders) and "torch" not in folders
        _installed[kind] = known
    return known


def _attribute_of(kind: type) -> str:
    attribute = _attributes.get(kind)
    if attribute is None:
        names = (_INSIDE.get(base.__name__, "") for base in kind.__mro__)
        attribute = _attributes[kind] = next((name for name in names if name), "")
    return attribute
