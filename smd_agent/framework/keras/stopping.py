"""The end of a Keras training that somebody asks for: ``fit`` ends by itself, other loops where a step begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smd_agent.interpreter.callers import callers, first_argument


class FitStopper:
    """Ends the trainings of one hook.

    Args:
        model: gives the model whose step has begun.
    """

    def __init__(self, model: Callable[[], object]) -> None:
        self._model = model

    def after_step(self) -> str:
        """Have the ``fit`` that is running, if one is, end when the current step is over."""
        model: Any = self._model()
        if not _is_in_fit(model):
            return ""
        model.stop_training = True
        return "Keras"

    def is_ignored(self) -> bool:
        """True if that ``fit`` goes on all the same."""
        model: Any = self._model()
        return _is_in_fit(model) and bool(model.stop_training)

    def before_update(self, end: Callable[[], object]) -> bool:
        """A step of a tape begins with its gradients, before an update, and one of a model is not looked into."""
        return False


def _is_in_fit(model: object) -> bool:
    return any(frame.f_code.co_name == "fit" and first_argument(frame) is model for frame in callers())
