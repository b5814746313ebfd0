"""Calls of chosen modules, seen with nothing of ours on the modules, which the program may copy and pickle meanwhile.

While any is chosen, ``Module.__call__`` is replaced, and what is chosen is known by identity. What a module is given is
told after its own hooks have run, which may change it: where it has such hooks, the ``forward`` of its class is
replaced during the call. What it returns is told as the program gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from smd_agent.framework import replaced_functions
from smd_agent.framework.replaced_functions import Function, Until
from smd_agent.pytorch.patching import Patch

Module = torch.nn.Module

Before = Callable[[Module, Any, Any], object]
"""Called with the module, what it is given by place and what by keyword."""
After = Callable[[Module, Any], object]
"""Called with the module and what it returns."""
Around = Callable[[Function], Function]
"""Makes what runs a module from what runs it by itself; both are called with the module first."""

_WHY = "inputs and outputs of layers are saved"


class _Watcher(NamedTuple):
    module: Module
    before: Before
    after: After
    around: Around | None


class WatchedCalls:
    """The modules whose calls are told of, by whoever wants to know.

    Args:
        patch_class: replaces ``Module.__call__``; ``Patch`` steps aside where something is compiled.
    """

    def __init__(self, patch_class: type[replaced_functions.Patch] = Patch) -> None:
        self._patch_class = patch_class
        self._watchers: dict[int, list[_Watcher]] = {}
        self._patch: replaced_functions.Patch | None = None
        self._aside = 0

    def watch(self, module: Module, before: Before, after: After, around: Around | None = None) -> Callable[[], object]:
        """Tell of the calls of a module; what is returned ends it.

        Args:
            module: it is held until then, so that no other one has its id.
            before: told what the module is given.
            after: told what it returns.
            around: makes what runs the module. What that is given is then told as the program gives it.
        """
        watcher = _Watcher(module, before, after, around)
        self._watchers.setdefault(id(module), []).append(watcher)
        self._settle()
        return lambda: self._forget(watcher)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave ``Module`` as it is by itself: what is compiled now must not hold functions of the agent."""
        self._aside += 1
        self._settle()
        try:
            yield
        finally:
            self._aside -= 1
            self._settle()

    def _settle(self) -> None:
        wanted = bool(self._watchers) and not self._aside
        patch = self._patch
        if wanted and patch is None:
            self._patch = self._patch_class(Module, "__call__", self._wrap, why=_WHY, until=Until.CALL_RETURNS)
        elif patch is not None and not wanted:
            self._patch = None
            patch.remove()

    def _forget(self, watcher: _Watcher) -> None:
        key = id(watcher.module)
        left = [other for other in self._watchers.pop(key, ()) if other is not watcher]
        if left:
            self._watchers[key] = left
        self._settle()

    def _wrap(self, original: Function) -> Function:
        watchers = self._watchers

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            found = watchers.get(id(module))
            if found is None:
                return original(module, *args, **kwargs)
            run = original
            for watcher in found:
                run = run if watcher.around is None else watcher.around(run)
            late = _tell_at_forward(module, found) if run is original else None
            if late is None:
                for watcher in found:
                    watcher.before(module, args, kwargs)
            try:
                result = run(module, *args, **kwargs)
            finally:
                if late is not None:
                    late.remove()
            for watcher in found:
                watcher.after(module, result)
            return result

        return call


def _tell_at_forward(module: Module, watchers: list[_Watcher]) -> Patch | None:
    """Have watchers told when the module's forward is called, if it has hooks that are called before that."""
    own = object.__getattribute__(module, "__dict__")
    if not own["_forward_pre_hooks"] or "forward" in own:
        return None
    waiting = [*watchers]

    def wrap(original: Function) -> Function:
        def forward(self: Module, *args: Any, **kwargs: Any) -> Any:
            if self is module:
                while waiting:
                    waiting.pop(0).before(self, args, kwargs)
            return original(self, *args, **kwargs)

        return forward

    return Patch(type(module), "forward", wrap, why=_WHY, until=Until.CALL_RETURNS)
