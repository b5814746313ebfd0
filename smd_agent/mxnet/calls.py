"""The door in ``Block.__call__``: those who watch the calls of blocks come and go in any order.

It is there only while somebody watches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mxnet.gluon import Block

Call = Callable[..., Any]
# Called with what would have been called, and its arguments: the block, then what the block was called with.
Watcher = Callable[..., Any]

_watchers: list[Watcher] = []
_original: Call | None = None
_door: Call | None = None


def watch(watcher: Watcher) -> Callable[[], None]:
    """Have ``watcher(run, block, *args, **kwargs)`` called in place of each call of a block; the result ends that.

    Of several the one that came last is called first.
    """
    _watchers.append(watcher)
    _put_in()

    def leave() -> None:
        if watcher in _watchers:
            _watchers.remove(watcher)
        if not _watchers:
            _take_out()

    return leave


def _put_in() -> None:
    global _original, _door
    if _door is not None:
        return
    original = Block.__call__

    @functools.wraps(original)
    def call(block: Block, *args: Any, **kwargs: Any) -> Any:
        run = original
        for watcher in _watchers:
            run = functools.partial(watcher, run)
        return run(block, *args, **kwargs)

    _original, _door = original, call
    Block.__call__ = call


def _take_out() -> None:
    global _original, _door
    # Somebody may have wrapped the door in the meantime; then theirs stays, and the door passes calls through.
    if _door is not None and vars(Block).get("__call__") is _door:
        Block.__call__ = _original
        _original = _door = None
