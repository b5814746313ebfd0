"""Detection of tracing, export, functorch transforms and captures of graphs: tensors have no values.

These are private functions of PyTorch; one that a torch version lacks counts as "not opaque".
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


# The number of the backward pass that runs in this thread, -1 outside of one. A forward inside of one is the
# recomputation of an activation checkpoint.
graph_task: Callable[[], int] = probe(torch, "_C._current_graph_task_id", -1)

_tracing_state = probe(torch, "_C._get_tracing_state", None)

# Not functorch's own `peek_interpreter_stack`: its first call makes a thread state that every autograd node copies from
# then on, which slows the whole rest of the run by 1 to 2 %.
key_is_included = probe(torch, "_C._dispatch_tls_is_dispatch_key_included", False)
_NAME = "FuncTorchDynamicLayerFrontMode"
# By its name it is searched for in each call.
TRANSFORM: Any = getattr(getattr(torch._C, "DispatchKey", None), _NAME, _NAME)

dispatch_modes = probe(torch, "_C._len_torch_dispatch_stack", 0)
_mode_of = probe(torch, "_C._get_dispatch_mode", None)
# Modes of PyTorch's own under which tensors have no values. Where they are not told apart, any mode may be one.
_KEYS: Any = getattr(torch._C, "_TorchDispatchModeKey", None) if hasattr(torch._C, "_get_dispatch_mode") else None
_WITHOUT_VALUES = [getattr(_KEYS, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(_KEYS, name)]


class Captures:
    """CUDA graphs that the program is capturing: what it calls is recorded, not computed.

    Nothing may be asked of the accelerator meanwhile, in no thread: the capture would end with an error.

    Attributes:
        under_way: how many there are.
    """

    __slots__ = ("under_way",)

    def __init__(self) -> None:
        self.under_way = 0


captures = Captures()


def is_transformed() -> bool:
    """True if functions are being traced, captured, or transformed by ``torch.func``: a call is no step by itself."""
    return bool(captures.under_way or key_is_included(TRANSFORM) or _tracing_state() is not None)


def has_no_values() -> bool:
    """True if the modes of ``__torch_dispatch__``, of which there are some, are not the program's alone."""
    return not _WITHOUT_VALUES or any(_mode_of(key) is not None for key in _WITHOUT_VALUES)


def is_opaque() -> bool:
    """True if the model is being traced, exported, transformed or captured right now."""
    return is_transformed() or (dispatch_modes() > 0 and has_no_values())
