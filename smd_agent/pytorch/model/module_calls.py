"""A removable patch of ``Module.__call__`` that reports outermost calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.framework.replaced_functions import Until
from smd_agent.pytorch.patching import Patch

Module = torch.nn.Module


class CallWatch:
    """The outermost calls of modules, in each thread.

    Args:
        look: called with the module before it runs.
        why: calls are watched.
        until: when that ends.
    """

    def __init__(self, look: Callable[[Module], object], why: str, until: Until) -> None:
        self._look = look
        self._why = why
        self._until = until
        self._depth = threading.local()
        self._patch: Patch | None = None

    @property
    def watching(self) -> bool:
        """True if calls are looked at."""
        return self._patch is not None

    def begin(self) -> None:
        """Watch the calls from now on."""
        if self._patch is None:
            self._patch = Patch(Module, "__call__", self._wrap, why=self._why, until=self._until)

    def end(self) -> None:
        """Leave ``Module`` as it was."""
        patch, self._patch = self._patch, None
        if patch is not None:
            patch.remove()

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        depth = self._depth
        look = self._look

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            level = getattr(depth, "level", 0)
            if level == 0:
                look(module)
            depth.level = level + 1
            try:
                return original(module, *args, **kwargs)
            finally:
                depth.level = level

        return call
