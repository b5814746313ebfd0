"""Search for modules among all objects that are alive , by the parameters that they own.

It is made only when a training model cannot be
told from calls alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.interpreter.living_objects import living
from smd_agent.pytorch.plain_access import own_dict, parameter_ids, parts

Module = torch.nn.Module


def living_modules() -> list[Module]:
    """All modules of the program."""
    # One that is still being made has no parts to ask for.
    return [module for module in living(Module) if "_modules" in own_dict(module)]


def owner_of(model: Module, others: set[int]) -> Module | None:
    """The smallest module around a model that holds other trained parameters as well, or None.

    Args:
        model: called by itself, so that its names are those of a part.
        others: ids of trained parameters that belong to no known model yet.
    """
    best: tuple[int, int] | None = None
    owner = None
    for candidate in living_modules():
        inside = parts(candidate)
        if candidate is model or not any(part is model for part in inside):
            continue
        held = _count(candidate, others)
        # Most of the others first, then the fewest parts.
        rank = (-held, len(inside))
        if held and (best is None or rank < best):
            best, owner = rank, candidate
    return owner


def topmost(wanted: set[int]) -> list[Module]:
    """The modules that own these parameters and can be called, without those inside of others.

    Graphs that a compiler made of a model own its parameters too; they count only where nothing else does.
    """
    owners = [module for module in living_modules() if _can_be_called(module) and _count(module, wanted)]
    graphs = [owner for owner in owners if is_a(owner, torch.fx.GraphModule)]
    in_graphs = {id(part) for graph in graphs for part in parts(graph)}
    originals = [owner for owner in owners if id(owner) not in in_graphs]
    owners = originals if _together(originals, wanted) == _together(owners, wanted) else owners
    inside = {id(part) for owner in owners for part in parts(owner) if part is not owner}
    return [owner for owner in owners if id(owner) not in inside]


def _can_be_called(module: Module) -> bool:
    # Containers such as ModuleList are never run themselves.
    return is_a(module, torch.jit.ScriptModule) or in_class(type(module), "forward") is not Module.forward


def _count(module: Module, wanted: set[int]) -> int:
    return len(parameter_ids(module) & wanted)


def _together(modules: Iterable[Module], wanted: set[int]) -> int:
    return len({key for module in modules for key in parameter_ids(module)} & wanted)
