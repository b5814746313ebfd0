"""Patches of ``Block.__call__`` for those who watch the calls of blocks for a while."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet.gluon import Block

from smd_agent.framework.replaced_functions import Function, Patch, Until
from smd_agent.interpreter.hidden_frames import unseen

# Called with what would have been called, and its arguments: the block, then what the block was called with.
Watcher = Callable[..., Any]

_watchers: list[Watcher] = []


def watch(watcher: Watcher, until: Until = Until.STEP_CLOSES) -> Callable[[], None]:
    """Have ``watcher(run, block, *args, **kwargs)`` called in place of each call of a block; the result ends that.

    Of several the one that came last is called first; they may end in any order.
    """

    def make(original: Function) -> Function:
        def call(block: Block, *args: Any, **kwargs: Any) -> Any:
            return watcher(original, block, *args, **kwargs)

        return call

    patch = Patch(Block, "__call__", make, why="blocks are found and saved as they are called", until=until)
    _watchers.append(watcher)

    def leave() -> None:
        patch.remove()
        if watcher in _watchers:
            _watchers.remove(watcher)

    return leave


def shown_to_newcomers(run: Callable[..., Any]) -> Callable[..., Any]:
    """The rest of a call that has begun, seen by those too who begin to watch between now and its being run.

    To call the block once more would do so as well, but whatever the program has put around ``Block.__call__`` would
    see two calls where there is one.
    """
    before = [*_watchers]

    def call(block: Block, *args: Any, **kwargs: Any) -> Any:
        seen = run
        for watcher in _watchers:
            if watcher not in before:
                seen = partial(watcher, seen)
        return seen(block, *args, **kwargs)

    return unseen(call)
