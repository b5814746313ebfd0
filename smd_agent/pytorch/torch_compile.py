"""State of ``torch.compile``: whether it compiles or has compiled; and the functions of ours that are kept from it.

These are private functions of PyTorch; a torch version that lacks one counts as not compiling, and compiles ours too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", bool)

# Half of it, which takes a quarter of the time: this is set while an export or the like runs the model. The other half
# is ``is_dynamo_compiling``.
compiler: Any = (
    torch.compiler if hasattr(torch.compiler, "_is_compiling_flag") else SimpleNamespace(_is_compiling_flag=False)
)

_frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)


def has_compiled() -> bool:
    """True if ``torch.compile`` has been called; importing its compiler is not enough, optimizers do that too."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(compiler, "cached_backends", {})
    return any(backend is not None for backend in backends.values())


def leave_uncompiled(function: Any, with_callees: bool = False) -> None:
    """Have ``torch.compile`` run a function of ours as it is, though a compiled function calls it.

    Else it would be compiled too: a frame more, and ``is_compiling`` would always be true in it. Where the compiler
    gets to see the call itself, it may still make the function a part of what it compiles.

    Args:
        function: what is called.
        with_callees: whether all that it calls is left alone too.
    """
    if hasattr(_frames, "set_code_exec_strategy"):
        action = _frames._FrameAction  # type: ignore[union-attr]
        callees = action.SKIP if with_callees else action.DEFAULT
        strategy = _frames._FrameExecStrategy(action.SKIP, callees)  # type: ignore[union-attr]
        _frames.set_code_exec_strategy(function.__code__, strategy)  # type: ignore[union-attr]
    elif hasattr(_frames, "skip_code"):
        _frames.skip_code(function.__code__)  # type: ignore[union-attr]


def is_dynamo_compiling() -> bool:
    """True if the compiler traces this call."""
    return False


# What it traces in its place, as where a function has been compiled already. Of PyTorch's own function of this name it
# keeps frames in which nothing is computed: these it leaves to Python without us, and compiles what they call.
is_dynamo_compiling._torchdynamo_inline = lambda: True  # type: ignore[attr-defined]
leave_uncompiled(is_dynamo_compiling)
