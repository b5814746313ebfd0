"""The Keras hook: what a script, or the agent on its behalf, saves ``fit``, ``evaluate`` and ``predict`` with."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from smd_agent import guard, session
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.strategy import rank_and_size


class KerasHook(TensorflowHook):
    """Saves Keras trainings; given to ``callbacks=`` it does what it does anyhow.

    The mode follows the call (``fit`` TRAIN, ``evaluate`` EVAL, ``predict`` PREDICT) until ``set_mode`` is called.

    Args: see ``FrameworkHook``.
    """

    # Keras asks a callback for nothing but these and methods of certain names, so this is one for every Keras without
    # belonging to any.
    async_safe = True
    _supports_tf_logs = True
    _chief_worker_only = None
    model: Any = None
    params: Any = None
    strategy: Any = None

    def set_up(self) -> None:
        """Watch Keras, if the agent does not do so already."""
        super().set_up()
        self.follow_calls()
        self._watch()

    @session.fence("watching Keras")
    def _watch(self) -> None:
        from smd_agent.tensorflow import keras_watch

        if not keras_watch.armed and not keras_watch.watch_imported(None):
            # TensorFlow imports it with the first use of its attribute.
            failure = guard.attempt(lambda: tf.keras.Model)
            if failure is None:
                keras_watch.watch_imported(None)

    def worker(self) -> tuple[int, int]:
        """Number of this process among the workers of the strategy that trains, and how many they are."""
        return rank_and_size(self.strategy)

    # What Keras calls.

    def set_params(self, params: Any) -> None:
        """Not needed."""

    def set_model(self, model: Any) -> None:
        """Not needed: every model is watched."""

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _nothing(self: KerasHook, *args: Any, **kwargs: Any) -> None:
    """Called by Keras; what it tells is known already."""


for _what in ("train", "test", "predict", "epoch", "batch", "train_batch", "test_batch", "predict_batch"):
    for _when in ("begin", "end"):
        setattr(KerasHook, f"on_{_what}_{_when}", _nothing)
