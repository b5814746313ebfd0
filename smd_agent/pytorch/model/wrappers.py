"""Wrappers around models, and what a model's parts are called without them.

``DistributedDataParallel``, ``torch.compile`` and their like are modules that hold one other module. Wherever they
stand, around the model or around a part of it, names are those the program would see had it not wrapped anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from smd_agent.framework.plain_access import is_a, is_installed
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.model.fsdp import stand_ins
from smd_agent.pytorch.plain_access import children, held, own_dict, own_parameters

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
_attributes: WeakIdentityMap[type, str] = WeakIdentityMap()


def wrapper_chain(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The module and, as long as it is a wrapper around one model, what it wraps."""
    seen: set[int] = set()
    inner: torch.nn.Module | None = module
    while inner is not None and id(inner) not in seen:
        yield inner
        seen.add(id(inner))
        attribute = _attribute_of(type(inner))
        inner = inside(inner, attribute) if attribute else _wrapped_by_library(inner)


def inside(module: torch.nn.Module, attribute: str) -> torch.nn.Module | None:
    """The module that another one has as this attribute; None if there is none."""
    found = dict(children(module)).get(attribute, own_dict(module).get(attribute))
    return found if is_a(found, torch.nn.Module) else None


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside of all wrappers, whose names the user knows."""
    *_, inner = wrapper_chain(module)
    return inner


def class_name(module: torch.nn.Module) -> str:
    """The name of the class that the program gave the module, not that of one made from it while it runs."""
    module = unwrapped(module)
    if is_a(module, _SCRIPT):
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
        for name, parameter in own_parameters(layer):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{prefix}.{name}" if prefix else name, instead.get(id(parameter), parameter)


def _walk(prefix: str, module: torch.nn.Module, seen: set[int]) -> Iterator[tuple[str, torch.nn.Module]]:
    module = unwrapped(module)
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, child in children(module):
        yield from _walk(f"{prefix}.{name}" if prefix else name, child, seen)


def _wrapped_by_library(module: torch.nn.Module) -> torch.nn.Module | None:
    """The one module that a class of an installed library keeps to itself, beside nothing of its own."""
    found = own_dict(module).get("_modules")
    # Most modules have none, or several, and are not looked at any further.
    if type(found) is dict and len(found) != 1:
        return None
    if held(module, "_parameters") or held(module, "_buffers") or not _is_of_library(type(module)):
        return None
    inner = children(module)
    return inner[0][1] if len(inner) == 1 and inner[0][0].startswith("_") else None


def _is_of_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] != "torch" and is_installed(kind)


def _attribute_of(kind: type) -> str:
    attribute = _attributes.get(kind)
    if attribute is None:
        names = (_INSIDE.get(base.__name__, "") for base in kind.__mro__)
        attribute = _attributes.set(kind, next((name for name in names if name), ""))
    return attribute
