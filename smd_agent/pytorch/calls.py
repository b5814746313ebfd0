"""Calls of modules, looked at for as long as somebody needs to."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.pytorch.opaque import is_compiling, leave_uncompiled

Module = torch.nn.Module


class CallWatch:
    """The outermost calls of modules, in each thread.

    Args:
        look: called with the module before it runs.
    """

    def __init__(self, look: Callable[[Module], object]) -> None:
        self._look = look
        self._depth = threading.local()
        self.watching = False
        """Whether calls are looked at."""

    def begin(self) -> None:
        """Watch the calls from now on."""
        self.watching = True
        if getattr(Module.__call__, "_smd_agent_watch", None) is not self:
            Module.__call__ = self._wrapper(Module.__call__)  # type: ignore[method-assign]

    def end(self) -> None:
        """Leave ``Module`` as it was."""
        self.watching = False
        # Whoever has wrapped ours meanwhile keeps it, passing calls through; it goes when it is uppermost again.
        wrapper = Module.__call__
        if getattr(wrapper, "_smd_agent_watch", None) is self:
            Module.__call__ = wrapper.__wrapped__  # type: ignore[attr-defined, method-assign]

    def _wrapper(self, original: Callable[..., Any]) -> Callable[..., Any]:
        depth = self._depth
        look = self._look

        @functools.wraps(original)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            if not self.watching:
                self.end()
                return original(module, *args, **kwargs)
            level = getattr(depth, "level", 0)
            if level == 0:
                look(module)
            depth.level = level + 1
            try:
                return original(module, *args, **kwargs)
            finally:
                depth.level = level

        leave_uncompiled(call, inlined=True)
        call._smd_agent_watch = self  # type: ignore[attr-defined]
        return call
