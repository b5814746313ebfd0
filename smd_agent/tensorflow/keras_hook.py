"""The Keras hook: what a script, or the agent on its behalf, saves ``fit``, ``evaluate`` and ``predict`` with."""

from __future__ import annotations

from typing import Any

from smd_agent.tensorflow.hook import TensorflowHook


class KerasHook(TensorflowHook):
    """Saves Keras trainings and GradientTape loops; given to ``callbacks=`` it does what it does anyhow.

    Keras asks a callback for nothing but methods of these names, so this is one for every Keras without belonging to
    any.
    """

    async_safe = True
    _supports_tf_logs = True
    _chief_worker_only = None
    model: Any = None
    params: Any = None

    def set_up(self) -> None:
        """Take the mode from what the program does until ``set_mode`` is called."""
        super().set_up()
        self.follow_calls()

    def set_params(self, params: Any) -> None:
        """Do nothing; called by Keras."""

    def set_model(self, model: Any) -> None:
        """Do nothing; called by Keras."""

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _nothing(self: KerasHook, *args: Any, **kwargs: Any) -> None:
    """Called by Keras; what it tells is known already."""


for _what in ("train", "test", "predict", "epoch", "batch", "train_batch", "test_batch", "predict_batch"):
    for _when in ("begin", "end"):
        setattr(KerasHook, f"on_{_what}_{_when}", _nothing)
