"""Variables of one number of a Keras that computes with PyTorch, read where they lie in main memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from smd_agent.framework.keras.plain_access import attribute
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.own_operations import apart, without_gradients

_NUMBERS = {torch.float16, torch.float32, torch.float64}


class TorchVariables:
    """Variables of PyTorch's; see ``ScalarVariables``."""

    def can_be_read(self) -> bool:
        """True, as nothing else is a value."""
        return True

    @apart
    def plain(self, variable: Any) -> torch.Tensor | None:
        """The tensor of one number that a variable of Keras's is around, in main memory."""
        inside = attribute(variable, "_value")
        if type(inside) not in (torch.nn.Parameter, torch.Tensor) or not has_memory(inside):
            return None
        return inside if inside.is_cpu and inside.dtype in _NUMBERS and not inside.ndim else None

    def reader(self, variables: Sequence[torch.Tensor]) -> Callable[[], list[float]]:
        """A function that gives the numbers that plain variables have when it is called."""

        @apart
        @without_gradients
        def read() -> list[float]:
            return [variable.item() for variable in variables]

        return read

    @apart
    def rounding(self, variable: torch.Tensor) -> float:
        """The largest part of a number by which a plain variable rounds it."""
        return torch.finfo(variable.dtype).eps / 2
