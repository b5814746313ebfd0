"""Clean-up of a process that a fork has made: files and threads that are its parent's alone.

Children of a program are not the agent's, and may live longer than the program. What is asked for here is done in each
of them before it goes on; one handler of the system's, which cannot be taken away, does all of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

Action = Callable[[], None]

# None as long as forks are not watched; then in the order in which they were asked for. Each keeps alive what it is a
# method of: a file that nobody knows any more is inherited, too.
_actions: dict[Action, None] | None = None


def do_in_children(action: Action) -> None:
    """Have something done in every process that a fork makes; asked for again, it is done once.

    Args:
        action: drops what is not the child's; one that raises ``OSError`` keeps no other from being called.
    """
    global _actions
    if _actions is None:
        _actions = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_do_all)
    _actions[action] = None


def leave_to_children(action: Action) -> None:
    """Have it done no more; nothing happens if nobody has asked for it."""
    if _actions is not None:
        _actions.pop(action, None)


def _do_all() -> None:
    # They take themselves away.
    for action in [*(_actions or ())]:
        with suppress(OSError):
            action()
