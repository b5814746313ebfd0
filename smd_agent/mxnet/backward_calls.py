"""The replacement of ``mxnet.autograd.backward``, which scripts import by name: what they hold must be watched too.

It is made once, when MXNet has been imported; in a step that is not saved it passes the call on and does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet import autograd

from smd_agent.framework.patching import Function, replace

Watcher = Callable[[Any, Callable[[], Any]], Any]

_watchers: list[Watcher] = []
_installed = False


def install() -> None:
    """Replace the function; called again, do nothing."""
    global _installed
    if not _installed:
        _installed = True
        replace(autograd, "backward", _around, why="losses and gradients are seen in backward passes")


def watch(watcher: Watcher) -> Callable[[], None]:
    """Have ``watcher(heads, run)`` called in place of each backward pass; the result ends that."""
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher)


def _around(original: Function) -> Function:
    def backward(heads: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watchers:
            return original(heads, *args, **kwargs)
        return _watchers[-1](heads, lambda: original(heads, *args, **kwargs))

    return backward
