"""Replacements of both ways to start a backward pass, for those who watch the passes.

Scripts import ``mxnet.autograd.backward`` by name, and what they hold must be watched too: both are replaced once, when
MXNet has been imported, and pass the call on as long as nobody watches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any, Protocol

from mxnet import autograd
from mxnet.ndarray import NDArray

from smd_agent.framework.replaced_functions import Function, is_replaced, replace
from smd_agent.interpreter.hidden_frames import unseen

Watcher = Callable[[Any, Callable[[], Any]], Any]

_WHY = "losses and gradients are seen in backward passes"


class PassListener(Protocol):
    """Is told of backward passes; it raises nothing."""

    def pass_begins(self, heads: Any) -> None:
        """A pass begins from these arrays."""


class _Passes:
    """The watch of the process on backward passes.

    Attributes:
        listener: is told of all of them, in saved steps and in others; None if nobody wants that.
        watchers: are called in place of them.
        threads: ids of those that have begun one.
    """

    def __init__(self) -> None:
        self.listener: PassListener | None = None
        self.watchers: list[Watcher] = []
        self.threads: set[int] = set()

    def are_of_one_thread(self) -> bool:
        """True if no other thread that is alive has begun a pass."""
        if len(self.threads) > 1:
            self.threads.intersection_update([one.ident for one in threading.enumerate()])
        return self.threads <= {get_ident()}


passes = _Passes()


def install() -> None:
    """Replace the functions; called again, do nothing."""
    for owner in (autograd, NDArray):
        if not is_replaced(owner, "backward"):
            replace(owner, "backward", _around, why=_WHY)


def watch(watcher: Watcher) -> Callable[[], None]:
    """Have ``watcher(heads, run)`` called in place of each backward pass; the result ends that.

    Of several the one that came last is called first; they may end in any order.
    """
    passes.watchers.append(watcher)

    def leave() -> None:
        if watcher in passes.watchers:
            passes.watchers.remove(watcher)

    return leave


def _around(original: Function) -> Function:
    def backward(heads: Any, *args: Any, **kwargs: Any) -> Any:
        passes.threads.add(get_ident())
        if passes.listener is not None:
            passes.listener.pass_begins(heads)
        if not passes.watchers:
            return original(heads, *args, **kwargs)
        run: Callable[[], Any] = unseen(lambda: original(heads, *args, **kwargs))
        for watcher in [*passes.watchers]:
            run = partial(watcher, heads, run)
        return run()

    return backward
