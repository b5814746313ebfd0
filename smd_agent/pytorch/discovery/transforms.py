"""Watch on ``torch.func``: models may be trained by its gradients, which cannot be seen, or be called inside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smd_agent.framework.replaced_functions import Until
from smd_agent.pytorch.patching import Patch
from smd_agent.pytorch.tracing import is_transformed

_TRANSFORMS = ("grad", "grad_and_value", "vjp")


class TransformWatch:
    """The transforms of one program.

    Attributes:
        used: whether one that computes gradients has been, before a model was found.
        seen_call: whether a module has been called inside of one.
    """

    def __init__(self) -> None:
        self.used = False
        self.seen_call = False
        self._patches: list[Patch] = []

    def begin(self) -> None:
        """Watch what computes gradients."""
        for name in _TRANSFORMS:
            why = "models that are trained by gradients of torch.func are told of"
            self._patches.append(Patch(torch.func, name, self._wrap, why=why, until=Until.MODEL_IS_FOUND))

    def end(self) -> None:
        """Watch it no more."""
        while self._patches:
            self._patches.pop().remove()

    def has_call(self) -> bool:
        """True if the call of a module that is looked at is inside of one, and so no step by itself."""
        inside = is_transformed()
        if inside:
            self.seen_call = True
        return inside

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def transform(*args: Any, **kwargs: Any) -> Any:
            self.used = True
            return original(*args, **kwargs)

        return transform
