"""The operations of a step that is made again in a process of its own, where all of them may run."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.framework.made_values import Made, Place
from smd_agent.pytorch.blame.operations import Operations
from smd_agent.pytorch.blame.replay import is_known
from smd_agent.pytorch.tracing import graph_task

# What of the program runs in a backward pass is called from it, as what a checkpoint computes again.
_BACKWARD: Any = getattr(torch.autograd.graph, "_engine_run_backward", None)
_CODE = None if _BACKWARD is None else _BACKWARD.__code__
_LOW = (torch.float16, torch.bfloat16, torch.float32)


class WatchedOperations(Operations):  # type: ignore[no-untyped-call]
    """Those of a step.

    Args:
        layers: the names of modules, by their ids.
        rows: of the batch; 0 where that is not known.
        dtype: that floating-point numbers have whatever the program casts them to; None: as it does.
    """

    def __init__(self, layers: dict[int, str], rows: int, dtype: torch.dtype | None) -> None:
        super().__init__(iter(()), layers, rows, _CODE, is_known)
        self._dtype = dtype
        self._of_forward: Made | None = None

    @property
    def maker(self) -> Made | None:
        """The operation that has made a value that is not finite: in the backward pass, if one has begun."""
        return self.nan or self.infinite or self._of_forward

    def begin_backward(self) -> None:
        """A backward pass begins, from values that are finite: what was not has not reached them."""
        self._of_forward = self.maker
        self.nan = self.infinite = None

    def let_through(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation."""
        if self._dtype is not None and kwargs.get("dtype") in _LOW:
            kwargs = {**kwargs, "dtype": self._dtype}
        return func(*args, **kwargs)

    def found_in_backward(self) -> None:
        """Go on: the program's own code runs."""

    def place(self) -> Place | None:
        """The line of the program's that is running; None in a backward pass that runs none."""
        return super().place() if _CODE is not None or graph_task() == -1 else None
