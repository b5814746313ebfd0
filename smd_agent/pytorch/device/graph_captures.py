"""Watch on CUDA graphs: what the program captures is recorded, not computed, and what it replays cannot be seen.

While a graph is captured nothing may be asked of the accelerator, or the capture ends with an error; see
``tracing.Captures``. So all that is on its way is waited for before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.recorder import Recorder
from smd_agent.framework.replaced_functions import is_replaced, replace
from smd_agent.interpreter.callers import callers
from smd_agent.pytorch.tracing import captures

_COMPILER = "torch._inductor"
_LINE = "a CUDA graph was captured: what its replays compute is not saved"


class _Before(NamedTuple):
    """The position of a run before a capture."""

    inside: bool
    saving: bool
    updated: bool
    awaits_update: bool
    by_compiler: bool


def _is_of_compiler() -> bool:
    """True if it is compiled code whose calls are captured: the calls that the program makes go on being seen."""
    return any(frame.f_globals.get("__name__", "").startswith(_COMPILER) for frame in callers())


class _GraphCaptures:
    """The one of the process."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._before: _Before | None = None

    def follow(self, recorder: Recorder) -> None:
        """Keep the captures that come out of a run."""
        self._recorder = recorder

    def watch(self) -> None:
        """Have captures told of from now on."""
        graph = getattr(torch.cuda, "CUDAGraph", None)
        if graph is not None and not is_replaced(graph, "capture_begin"):
            why = "nothing may be asked of an accelerator while a graph is captured"
            replace(graph, "capture_begin", self._wrap_begin, why=why)
            replace(graph, "capture_end", self._wrap_end, why=why)

    def _wrap_begin(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_begin(*args: Any, **kwargs: Any) -> Any:
            captures.under_way += 1
            self._begins()
            try:
                return original(*args, **kwargs)
            except BaseException:
                captures.under_way = max(captures.under_way - 1, 0)
                self._ended()
                raise

        return capture_begin

    def _wrap_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def capture_end(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            finally:
                captures.under_way = max(captures.under_way - 1, 0)
                self._ended()

        return capture_end

    @STEPS.fence("waiting for an accelerator before a graph is captured")
    def _begins(self) -> None:
        recorder = self._recorder
        if captures.under_way == 1 and recorder is not None:
            position = recorder.position
            with recorder.lock:
                if recorder.late is not None:
                    recorder.late.settle(wait=True)
            self._before = _Before(
                position.inside, position.saving, position.updated, position.awaits_update, _is_of_compiler()
            )
            # Calls of models are none of a step, and updates end none.
            position.inside, position.saving = True, False

    @STEPS.fence("going on after a graph was captured")
    def _ended(self) -> None:
        before, recorder = self._before, self._recorder
        if captures.under_way == 0 and before is not None and recorder is not None:
            self._before = None
            position = recorder.position
            position.inside, position.saving, position.updated, position.awaits_update, _ = before
            if not before.by_compiler:
                guard.say_once("graph captures", _LINE)


graph_captures = _GraphCaptures()
