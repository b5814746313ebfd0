"""A process in which other tests have compiled, taken for one that has compiled nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from smd_agent.pytorch.capture import persistent_hooks
from smd_agent.pytorch.torch_compile import has_compiled


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """Have the agent work as in a process that has not compiled."""
    # Where ``torch_compile.has_compiled`` looks: a test cannot know all modules that ask it.
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    with (
        mock.patch.dict(getattr(compiler, "cached_backends", {}), clear=True),
        mock.patch.object(persistent_hooks.watch, "_stays", False),
    ):
        assert not has_compiled()
        # What has stayed in place since a test before has compiled.
        persistent_hooks.watch.end(None)
        yield
