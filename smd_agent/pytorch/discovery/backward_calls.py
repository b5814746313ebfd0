"""Removable patches of ``torch.autograd`` that report backward passes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.framework.plain_access import elements_of, is_a
from smd_agent.framework.replaced_functions import Until
from smd_agent.pytorch.patching import Patch
from smd_agent.pytorch.plain_access import is_parameter
from smd_agent.pytorch.tracing import graph_task


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
        self._patches: list[Patch] = []
        self._inside = False

    def begin(self) -> None:
        """Watch the calls from now on."""
        if not self._patches:
            for name in ("backward", "grad"):
                make = functools.partial(self._wrap, name)
                why = "a backward pass shows which parameters are trained"
                self._patches.append(Patch(torch.autograd, name, make, why=why, until=Until.MODEL_IS_FOUND))

    def end(self) -> None:
        """Watch no more calls."""
        while self._patches:
            self._patches.pop().remove()

    def _wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside or graph_task() != -1:
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

        return watched


def reached_by(function: str, tensors: Any, inputs: Any) -> list[torch.Tensor]:
    """The tensors that get gradients: all leaves of the graph or, of ``grad``, the parameters that it is asked for."""
    if function == "backward":
        return leaves(tensors)
    return [*filter(is_parameter, elements_of(inputs) if is_a(inputs, (list, tuple)) else [inputs])]


def leaves(tensors: Any) -> list[torch.Tensor]:
    """All tensors that a backward pass from these tensors ends at."""
    starts = elements_of(tensors) if is_a(tensors, (list, tuple)) else [tensors]
    nodes = [tensor.grad_fn for tensor in starts if is_a(tensor, torch.Tensor)]
    seen = set()
    found: list[torch.Tensor] = []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable: Any = getattr(node, "variable", None)
        if is_a(variable, torch.Tensor):
            found.append(variable)
        nodes.extend(source for source, _ in node.next_functions)
    return found
