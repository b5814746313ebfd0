"""The door in ``mxnet.autograd.backward``, which scripts import by name: what they hold must be watched too.

Put in once, when MXNet has been imported; in a step that is not saved it passes the call on and does nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mxnet import autograd

Watcher = Callable[[Any, Callable[[], Any]], Any]

_watchers: list[Watcher] = []
_installed = False


def install() -> None:
    """Put the door in; called again, do nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    original = autograd.backward

    @functools.wraps(original)
    def backward(heads: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watchers:
            return original(heads, *args, **kwargs)
        return _watchers[-1](heads, lambda: original(heads, *args, **kwargs))

    autograd.backward = backward


def watch(watcher: Watcher) -> Callable[[], None]:
    """Have ``watcher(heads, run)`` called in place of each backward pass; the result ends that."""
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher)
