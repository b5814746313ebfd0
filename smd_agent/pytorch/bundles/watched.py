"""The operations of a step that is made again in a process of its own, where all of them may run."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.pytorch.blame.operations import Operations, Place
from smd_agent.pytorch.blame.replay import is_known
from smd_agent.pytorch.tracing import graph_task

_LOW = (torch.float16, torch.bfloat16, torch.float32)


class WatchedOperations(Operations):  # type: ignore[no-untyped-call]
    """Those of a step.

    Args:
        layers: the names of modules, by their ids.
        rows: of the batch; 0 where that is not known.
        dtype: that floating-point numbers have whatever the program casts them to; None: as it does.
    """

    def __init__(self, layers: dict[int, str], rows: int, dtype: torch.dtype | None) -> None:
        super().__init__(iter(()), layers, rows, None, is_known)
        self._dtype = dtype

    def let_through(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation."""
        if self._dtype is not None and kwargs.get("dtype") in _LOW:
            kwargs = {**kwargs, "dtype": self._dtype}
        return func(*args, **kwargs)

    def found_in_backward(self) -> None:
        """Go on: the program's own code runs."""

    def place(self) -> Place | None:
        """The line of the program's that is running; None in a backward pass."""
        return None if graph_task() != -1 else super().place()
