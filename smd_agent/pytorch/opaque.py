"""Tells when tensors have no values to look at: while a model is traced, exported, compiled or transformed.

These are private probes; one that a torch version lacks counts as "not opaque".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _probe(owner: Any, path: str, default: Any) -> Callable[[], Any]:
    for name in path.split("."):
        owner = getattr(owner, name, None)
    if callable(owner):
        found: Callable[[], Any] = owner
        return found
    return lambda: default


is_compiling: Callable[[], bool] = _probe(torch, "compiler.is_compiling", False)

# The number of the backward pass that runs in this thread, -1 outside of one. A forward inside of one is the
# recomputation of an activation checkpoint.
graph_task: Callable[[], int] = _probe(torch, "_C._current_graph_task_id", -1)

_tracing_state = _probe(torch, "_C._get_tracing_state", None)
_transforms = _probe(torch, "_C._functorch.peek_interpreter_stack", None)
_dispatch_modes = _probe(torch, "_C._len_torch_dispatch_stack", 0)


def is_opaque() -> bool:
    """Whether the model is being traced, exported or transformed right now."""
    return _tracing_state() is not None or _transforms() is not None or _dispatch_modes() > 0
