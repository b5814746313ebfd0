"""Hooks of ours on all optimizers, registered so that the program's own hooks get the numbers that they get without us.

PyTorch numbers all hooks of a process in one row, and a module with hooks pickles their numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.hooks import RemovableHandle


def register(function: Callable[[Any], RemovableHandle], hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook by a function of PyTorch's that does it."""
    handle = function(hook)
    number, hooks = handle.id, handle.hooks_dict_ref()
    if hooks is not None and RemovableHandle.next_id == number + 1:
        # Below zero there are none of the program's.
        handle.id = min([0, *hooks]) - 1
        hooks[handle.id] = hooks.pop(number)
        RemovableHandle.next_id = number
    return handle
