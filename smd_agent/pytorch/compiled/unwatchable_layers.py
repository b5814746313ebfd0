"""Layers whose inputs and outputs cannot be watched without changing what they compute or how they are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.guard import say_once
from smd_agent.pytorch.model.kept_out_of_modules import compiled_call
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import COMPILED, inside, unwrapped, wrapper_chain
from smd_agent.pytorch.plain_access import children, is_training, parts


class Region(NamedTuple):
    """A module whose call is compiled, and what is compiled: the same, or what it wraps.

    inner: None if the model cannot be run without the compiler, because a wrapper such as DDP is compiled with it.
    """

    owner: torch.nn.Module
    inner: torch.nn.Module | None


class Unwatchable(NamedTuple):
    """The layers of a model that must be left alone, by id, and the compiled regions that some of them are in."""

    layers: set[int]
    regions: list[Region]


def unwatchable_layers(tracked: TrackedModule) -> Unwatchable:
    """The layers of a model that must be left alone; one line says so for each reason, but of compiled regions."""
    module = tracked.module
    if module is None:
        return Unwatchable(set(), [])
    layers = parts(unwrapped(module))
    regions = list(_regions(module))
    hidden = {id(part) for region in regions for part in parts(region.owner)}
    if any(is_a(layer, torch.jit.ScriptModule) for layer in layers):
        say_unwatchable(tracked, "they are TorchScript")
        hidden.update(map(id, layers))
    # In evaluation this layer takes a faster path, with other rounding, unless it or a part of it has hooks.
    kind = torch.nn.TransformerEncoderLayer
    encoders = [layer for layer in layers if is_a(layer, kind) and not is_training(layer)]
    if any(id(encoder) not in hidden for encoder in encoders):
        say_unwatchable(tracked, "in evaluation a TransformerEncoderLayer computes differently when it is watched")
    return Unwatchable(hidden.union(*(map(id, parts(encoder)) for encoder in encoders)), regions)


def say_unwatchable(tracked: TrackedModule, reason: str) -> None:
    """Say once that layers of a model are not saved."""
    line = f"inputs and outputs of some layers of {tracked.names.model} are not saved: {reason}; weights and losses are"
    say_once(("hidden layers", reason), line)


def _regions(module: torch.nn.Module) -> Iterator[Region]:
    for entry in wrapper_chain(module):
        if _is_compiled(entry):
            yield _region(entry)
            return
    waiting = [unwrapped(module)]
    seen = {id(waiting[0])}
    while waiting:
        for _, child in children(waiting.pop()):
            if id(child) in seen:
                continue
            seen.add(id(child))
            if _is_compiled(child):
                yield _region(child)
            else:
                waiting.append(child)


def _region(owner: torch.nn.Module) -> Region:
    inner: Any = inside(owner, "_orig_mod") if type(owner).__name__ == COMPILED else owner
    wrapped = inner is not None and (len(list(wrapper_chain(inner))) > 1 or _has_compiled_forward(inner))
    return Region(owner, None if wrapped else inner)


def _is_compiled(layer: torch.nn.Module) -> bool:
    if type(layer).__name__ == COMPILED:
        return True
    return compiled_call(layer) is not None or _has_compiled_forward(layer)


def _has_compiled_forward(layer: torch.nn.Module) -> bool:
    return attribute(attribute(layer, "forward"), "_torchdynamo_orig_callable") is not None
