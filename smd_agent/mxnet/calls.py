"""Patches of ``Block.__call__`` for those who watch the calls of blocks for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.gluon import Block

from smd_agent.framework.patching import Function, Patch, Until

# Called with what would have been called, and its arguments: the block, then what the block was called with.
Watcher = Callable[..., Any]


def watch(watcher: Watcher, until: Until = Until.STEP_CLOSES) -> Callable[[], None]:
    """Have ``watcher(run, block, *args, **kwargs)`` called in place of each call of a block; the result ends that.

    Of several the one that came last is called first; they may end in any order.
    """

    def make(original: Function) -> Function:
        def call(block: Block, *args: Any, **kwargs: Any) -> Any:
            return watcher(original, block, *args, **kwargs)

        return call

    return Patch(Block, "__call__", make, why="blocks are found and saved as they are called", until=until).remove
