"""Replacements of both ways to start a backward pass, for those who watch the passes.

Scripts import ``mxnet.autograd.backward`` by name, and what they hold must be watched too: it is replaced once, when
MXNet has been imported, and passes the call on as long as nobody watches. ``NDArray.backward`` is replaced for as long
as somebody does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet import autograd
from mxnet.ndarray import NDArray

from smd_agent.framework.replaced_functions import Function, Patch, Until, is_replaced, replace
from smd_agent.interpreter.hidden_frames import unseen

Watcher = Callable[[Any, Callable[[], Any]], Any]

_watchers: list[Watcher] = []


def install() -> None:
    """Replace the function; called again, do nothing."""
    if not is_replaced(autograd, "backward"):
        replace(autograd, "backward", _around, why="losses and gradients are seen in backward passes")


def watch(watcher: Watcher, until: Until = Until.STEP_CLOSES) -> Callable[[], None]:
    """Have ``watcher(heads, run)`` called in place of each backward pass; the result ends that.

    Of several the one that came last is called first; they may end in any order.
    """

    def make(original: Function) -> Function:
        def backward(array: NDArray, *args: Any, **kwargs: Any) -> Any:
            return watcher(array, unseen(lambda: original(array, *args, **kwargs)))

        return backward

    patch = Patch(NDArray, "backward", make, why="losses and gradients are seen in backward passes", until=until)
    _watchers.append(watcher)

    def leave() -> None:
        patch.remove()
        if watcher in _watchers:
            _watchers.remove(watcher)

    return leave


def _around(original: Function) -> Function:
    def backward(heads: Any, *args: Any, **kwargs: Any) -> Any:
        run: Callable[[], Any] = partial(original, heads, *args, **kwargs)
        for watcher in [*_watchers]:
            run = partial(watcher, heads, run)
        return run()

    return backward
