"""Norms of gradients that the program computes itself, in ``clip_grad_norm_``: they are kept, and cost nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import torch
from torch.nn.utils import clip_grad

from smd_agent.core.failure_domains import SERIES
from smd_agent.formats.series import ABSENT
from smd_agent.framework.replaced_functions import Until, is_replaced, replace
from smd_agent.pytorch.patching import Patch
from smd_agent.pytorch.series.late_rows import Number, Part
from smd_agent.pytorch.series.lengths import as_numbers, is_measured, together
from smd_agent.pytorch.series.roots import number_of
from smd_agent.pytorch.torch_compile import is_compiling

_WHY = "norms that the program computes are kept"


Measured: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""A gradient and its norm."""


class ClipListener(Protocol):
    """Is told of norms."""

    def wants_norms(self) -> bool | None:
        """True if the norm of each gradient is wanted, and not only that of all of them."""

    def gradients_measured(self, count: int, each: list[Measured], total: Any) -> None:
        """The program has measured so many gradients; ``each``: the norm of each one, as far as that is wanted."""


class _Clipping:
    """The watch of the process on the function that measures gradients to clip them.

    Attributes:
        listener: is told of norms; None if nobody wants that.
    """

    def __init__(self) -> None:
        self.listener: ClipListener | None = None

    def tell(self, listener: ClipListener) -> None:
        """Tell this one, and no other, from now on."""
        self.listener = listener
        # Older releases of PyTorch have no function for this.
        if hasattr(clip_grad, "_get_total_norm") and not is_replaced(clip_grad, "_get_total_norm"):
            replace(clip_grad, "_get_total_norm", self._wrap, why=_WHY)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def total_norm(tensors: Any, norm_type: Any = 2.0, *args: Any, **kwargs: Any) -> Any:
            listener = self.listener
            if listener is None or is_compiling() or type(tensors) is not list or norm_type != 2:
                return original(tensors, norm_type, *args, **kwargs)
            kept: list[Measured] = []
            patch = _keep(kept) if listener.wants_norms() else None
            try:
                result = original(tensors, norm_type, *args, **kwargs)
            finally:
                if patch is not None:
                    patch.remove()
            listener.gradients_measured(len(tensors), kept, result)
            return result

        return total_norm


clipping = _Clipping()


@SERIES.fence("keeping norms that the program computes")
def _keep(kept: list[Measured]) -> Patch:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def foreach_norm(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tensors, *args, **kwargs)
            kept.extend(zip(tensors, result, strict=False))
            return result

        return foreach_norm

    return Patch(torch, "_foreach_norm", make, why=_WHY, until=Until.CALL_RETURNS)


class ClipNorms:
    """The norms that the program has computed since the last backward pass, of gradients before they were clipped.

    Attributes:
        total: of all gradients that it has measured; ``ABSENT`` if it has measured none.
        count: how many they are.
    """

    def __init__(self) -> None:
        self.total: Number = ABSENT
        self.count = 0
        # By id of the gradient: another pass, after which they may be others, makes all of them be forgotten.
        self._each: dict[int, torch.Tensor] = {}

    def clear(self) -> None:
        """Forget them."""
        self.total, self.count = ABSENT, 0
        self._each.clear()

    def add(self, count: int, each: list[Measured], total: Any) -> None:
        """The program has measured so many, which are others than those before."""
        number = number_of(total)
        if number is not ABSENT:
            self.total = together([], self.total, number)
            self.count += count
            for gradient, norm in each:
                self._each.setdefault(id(gradient), norm)

    def of(self, gradients: list[torch.Tensor | None]) -> list[Part] | None:
        """The lengths of gradients on one device; None unless the program has measured all of them."""
        places = [place for place, one in enumerate(gradients) if one is not None]
        norms = [self._each.get(id(one)) for one in gradients if one is not None]
        known = [norm for norm in norms if norm is not None and is_measured(norm)]
        if not known or len(known) < len(norms) or len({norm.device for norm in known}) > 1:
            return None
        return [as_numbers(places, known)]
