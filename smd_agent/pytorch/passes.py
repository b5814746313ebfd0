"""Backward passes, looked at for as long as somebody needs to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.pytorch.opaque import graph_task, is_compiling, leave_uncompiled


class PassWatch:
    """Calls of ``torch.autograd.backward`` and ``grad``, which all other ways to a backward pass go through.

    Args:
        before: called with the name of the function and the call's first two positional arguments (None where there
            are fewer); True if a step has been opened by it.
        after: called when the pass is over.
    """

    def __init__(self, before: Callable[[str, Any, Any], bool | None], after: Callable[[], object]) -> None:
        self._before = before
        self._after = after
        self._wanted = False
        self._inside = False

    def begin(self) -> None:
        """Watch the calls from now on."""
        if not self._wanted:
            self._wanted = True
            for name in ("backward", "grad"):
                if not hasattr(getattr(torch.autograd, name), "_smd_agent_watch"):
                    setattr(torch.autograd, name, self._wrapper(name))

    def end(self) -> None:
        """Watch no more calls."""
        self._wanted = False
        for name in ("backward", "grad"):
            self._take_off(name)

    def _take_off(self, name: str) -> None:
        # Whoever has wrapped ours meanwhile keeps it, passing calls through; it goes when it is uppermost again.
        wrapper = getattr(torch.autograd, name)
        if getattr(wrapper, "_smd_agent_watch", None) is self:
            setattr(torch.autograd, name, wrapper.__wrapped__)

    def _wrapper(self, name: str) -> Callable[..., Any]:
        original = getattr(torch.autograd, name)

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self._wanted:
                self._take_off(name)
            if not self._wanted or self._inside or graph_task() != -1 or is_compiling():
                return original(*args, **kwargs)
            first, second = (*args[:2], None, None)[:2]
            opened = self._before(name, kwargs.get("tensors", first), kwargs.get("inputs", second))
            self._inside = True
            try:
                # A step that has just been opened put something before us, which has to see this pass too.
                result = (getattr(torch.autograd, name) if opened else original)(*args, **kwargs)
            finally:
                self._inside = False
            self._after()
            return result

        leave_uncompiled(watched)
        watched._smd_agent_watch = self  # type: ignore[attr-defined]
        return watched


def leaves(tensors: Any) -> list[torch.Tensor]:
    """Parameters that a backward pass from these tensors reaches."""
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    nodes = [tensor.grad_fn for tensor in tensors if isinstance(tensor, torch.Tensor)]
    seen = set()
    found: list[torch.Tensor] = []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.nn.Parameter):
            found.append(variable)
        nodes.extend(source for source, _ in node.next_functions)
    return found
