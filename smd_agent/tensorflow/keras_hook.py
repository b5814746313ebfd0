"""The Keras hook: what a script, or the agent on its behalf, saves ``fit``, ``evaluate`` and ``predict`` with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from smd_agent import guard, session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_capture import place_log
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

    def save_epoch(self, logs: Mapping[str, Any]) -> None:
        """Save what an epoch's validation gave, in the current step, whatever that saves otherwise."""
        for name, value in logs.items():
            place_log(self, name)
            collection = CollectionKeys.LOSSES if name.endswith("loss") else CollectionKeys.METRICS
            captured = self.to_array(value)
            if captured is not None and captured[0].size and self._is_within(collection):
                self._write_scalar(name, captured[0].reshape(-1).copy(), None)

    def _is_within(self, collection: str) -> bool:
        """Whether the current step is not outside of those between which a collection is saved."""
        if collection not in self.include_collections:
            return False
        config = (self.get_collection(collection).save_config or self.save_config).get_save_config(self.mode)
        step = self.pulse.clock.step
        return step >= config.start_step and (config.end_step is None or step < config.end_step)

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
