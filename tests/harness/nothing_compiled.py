"""A process in which other tests have compiled, taken for one that has compiled nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from smd_agent.pytorch.capture import losses, persistent_hooks


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """Have the agent watch everything in saved steps, as in a process that has not compiled."""
    with ExitStack() as stack:
        for module in (losses, persistent_hooks):
            stack.enter_context(mock.patch.object(module, "has_compiled", return_value=False))
        stack.enter_context(mock.patch.object(persistent_hooks.watch, "_stays", False))
        yield
