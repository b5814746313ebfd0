"""Search for modules among all objects that are alive (``gc``), by the parameters that they own.

A search takes about 50 ms in a program with half a million objects; it is made only when a training model cannot be
told from calls alone.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch

Module = torch.nn.Module


def living_modules() -> list[Module]:
    """All modules of the program."""
    found = gc.get_objects()
    # Never isinstance: it would ask proxies, which may raise, and lazy objects, which may load something.
    kinds = {kind for kind in set(map(type, found)) if issubclass(kind, Module)}
    # One that is still being made has no parts to ask for.
    return [thing for thing in found if type(thing) in kinds and "_modules" in vars(thing)]


def owner_of(model: Module, others: set[int]) -> Module | None:
    """The smallest module around a model that holds other trained parameters as well, or None.

    Args:
        model: called by itself, so that its names are those of a part.
        others: ids of trained parameters that belong to no known model yet.
    """
    best: tuple[int, int] | None = None
    owner = None
    for candidate in living_modules():
        parts = list(candidate.modules())
        if candidate is model or not any(part is model for part in parts):
            continue
        held = _count(candidate, others)
        # Most of the others first, then the fewest parts.
        rank = (-held, len(parts))
        if held and (best is None or rank < best):
            best, owner = rank, candidate
    return owner


def topmost(wanted: set[int]) -> list[Module]:
    """The modules that own these parameters and can be called, without those inside of others.

    Graphs that a compiler made of a model own its parameters too; they count only where nothing else does.
    """
    owners = [module for module in living_modules() if _can_be_called(module) and _count(module, wanted)]
    graphs = [owner for owner in owners if isinstance(owner, torch.fx.GraphModule)]
    in_graphs = {id(part) for graph in graphs for part in graph.modules()}
    originals = [owner for owner in owners if id(owner) not in in_graphs]
    owners = originals if _together(originals, wanted) == _together(owners, wanted) else owners
    inside = {id(part) for owner in owners for part in owner.modules() if part is not owner}
    return [owner for owner in owners if id(owner) not in inside]


def _can_be_called(module: Module) -> bool:
    forward = getattr(type(module), "forward", None)
    # Containers such as ModuleList are never run themselves.
    return isinstance(module, torch.jit.ScriptModule) or forward is not Module.forward


def _count(module: Module, wanted: set[int]) -> int:
    return sum(1 for parameter in module.parameters() if id(parameter) in wanted)


def _together(modules: Iterable[Module], wanted: set[int]) -> int:
    return len({id(parameter) for module in modules for parameter in module.parameters()} & wanted)
