"""Tells when tensors have no values to look at: while a model is traced, exported, compiled or transformed.

These are private probes; one that a torch version lacks counts as "not opaque".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def probe(owner: Any, path: str, default: Any) -> Callable[..., Any]:
    """The function of this dotted name below a module; where there is none, one that returns the default."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    if callable(owner):
        found: Callable[..., Any] = owner
        return found
    return lambda *_: default


is_compiling: Callable[[], bool] = probe(torch, "compiler.is_compiling", False)

# The number of the backward pass that runs in this thread, -1 outside of one. A forward inside of one is the
# recomputation of an activation checkpoint.
graph_task: Callable[[], int] = probe(torch, "_C._current_graph_task_id", -1)

_tracing_state = probe(torch, "_C._get_tracing_state", None)

# Not functorch's own `peek_interpreter_stack`: its first call makes a thread state that every autograd node copies from
# then on, which slows the whole rest of the run by 1 to 2 %.
_key_is_included = probe(torch, "_C._dispatch_tls_is_dispatch_key_included", False)
_TRANSFORM = "FuncTorchDynamicLayerFrontMode"

_dispatch_modes = probe(torch, "_C._len_torch_dispatch_stack", 0)


def is_opaque() -> bool:
    """Whether the model is being traced, exported or transformed right now."""
    return bool(_tracing_state() is not None or _key_is_included(_TRANSFORM) or _dispatch_modes() > 0)
