"""Dropout by functions that stays on while a model is evaluated, as ``training`` is left to its default.

``usage/model/<name>/functional_dropout``, in evaluation only: the largest share that ``dropout``, ``dropout1d`` and the
like of ``torch.nn.functional`` drop in a model of which no module is in training mode, where the call does not say
whether it is a training; else 0. Where it says so, as by ``training=True``, it is meant.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch import _VF
from torch.nn import functional

from smd_agent.core.failure_domains import MODES
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.step_events import ModelCall, ModelReturn, StepEnd, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.interpreter.callers import callers
from smd_agent.pytorch.capture.functional_losses import let_scripts_compile
from smd_agent.pytorch.capture.given_arguments import gives
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import is_training, parts
from smd_agent.pytorch.torch_compile import has_compiled, is_compiling

_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d")
# What these call; neither a program nor a compiler holds on to that.
_CALLED = ("dropout", "feature_dropout")
_ARGUMENT, _PLACE = "training", 2


class LastingDropout(UsageProbe, domain=MODES, doing="looking at dropout that stays on in evaluation"):
    """The dropout of one step of evaluation that is saved.

    Args:
        usage: takes the numbers.
        is_own: tells whether what runs now is of the thread that the step is of.
    """

    def __init__(self, usage: Usage, is_own: Callable[[], bool]) -> None:
        super().__init__(usage)
        self.wanted = self.wanted and usage.writer.mode is ModeKeys.EVAL and not has_compiled()
        self._is_own = is_own
        # Weakly: one whose call has failed does not return, and must go when the program lets it go.
        self._calling: list[tuple[str, weakref.ref[torch.nn.Module]]] = []
        self._dropped: dict[str, float] = {}
        self._in_training: dict[str, bool] = {}
        self._left_out: dict[tuple[CodeType, int], bool] = {}

    @MODES.fence("watching dropout")
    def install(self, installed: Installed) -> None:
        """Watch until the step closes, if it saves any of this."""
        for name in _CALLED if self.wanted else ():
            original = getattr(_VF, name)
            installed.patch(_VF, name, self._wrap, why="dropout that stays on in evaluation is told of")
            let_scripts_compile(installed, getattr(_VF, name), original)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def dropout(*args: Any) -> Any:
            if self._calling and not is_compiling():
                self._about_to_drop(*args)
            return original(*args)

        return dropout

    @fence("looking at dropout", MODES)
    def _about_to_drop(self, _: Any, share: Any, is_on: Any) -> None:
        if is_on is not True or type(share) not in (float, int) or not share or not self._is_own():
            return
        name, reference = self._calling[-1]
        model = reference()
        if model is None or self._trains(name, model):
            return
        frame = _caller(callers())
        if frame is None:
            return
        place = frame.f_code, frame.f_lineno
        if place not in self._left_out:
            self._left_out[place] = gives(frame, _FUNCTIONS, _ARGUMENT, _PLACE) is False
        if self._left_out[place]:
            self._dropped[name] = max(self._dropped[name], float(share))

    def _trains(self, name: str, model: torch.nn.Module) -> bool:
        if name not in self._in_training:
            self._in_training[name] = any(map(is_training, parts(model)))
        return self._in_training[name]

    @on(ModelCall)
    def before_model(self, call: ModelCall) -> None:
        """A model is about to be called."""
        if call.model is not None:
            self._calling.append((call.name, weakref.ref(call.model)))
            self._dropped.setdefault(call.name, 0.0)

    @on(ModelReturn)
    def after_model(self, call: ModelReturn) -> None:
        """A model has returned."""
        if call.name is not None and self._calling and self._calling[-1][0] == call.name:
            self._calling.pop()

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what has been dropped."""
        for name, share in self._dropped.items():
            self._usage.save(f"model/{name}", {"functional_dropout": share})


def _caller(frames: Iterator[FrameType]) -> FrameType | None:
    """The function that has called one of those of ``torch.nn.functional``; None if none of them has been called."""
    codes = {getattr(functional, name).__code__ for name in _FUNCTIONS if hasattr(functional, name)}
    return next((frame for inner, frame in itertools.pairwise(frames) if inner.f_code in codes), None)
