"""Models of which only parts are seen being called, as where their class has a ``__call__`` of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from smd_agent.framework.plain_access import in_class
from smd_agent.interpreter.callers import callers, first_argument
from smd_agent.pytorch.model import live_modules
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import unwrapped
from smd_agent.pytorch.plain_access import holds

Module = torch.nn.Module


def owner_of(module: Module, models: Iterable[TrackedModule], others: set[int]) -> Module | None:
    """The module that this one is called as a part of, if the program calls other parts by themselves too.

    Args:
        module: the one that is called.
        models: those that are known.
        others: ids of trained parameters that belong to no known model, nor to this one.
    """
    for tracked in models:
        if tracked.owner is not None and holds(tracked.owner, module):
            return tracked.owner
    caller = caller_of(unwrapped(module))
    if caller is not None:
        return caller
    return live_modules.owner_of(module, others) if others else None


def caller_of(module: Module) -> Module | None:
    """The outermost module that is calling this one, which is a part of it, by a ``__call__`` of its own."""
    found = None
    for frame in callers():
        code = frame.f_code
        if code.co_name == "__call__":
            caller: Any = first_argument(frame)
            if _has_own_call(type(caller), code) and holds(caller, module):
                found = caller
    return None if found is module else found


def _has_own_call(kind: type, code: Any) -> bool:
    if not issubclass(kind, Module):
        return False
    own = in_class(kind, "__call__")
    return own is not vars(Module)["__call__"] and getattr(own, "__code__", None) is code
