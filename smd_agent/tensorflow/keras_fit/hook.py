"""Hook with which a script, or the agent on its behalf, saves ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from smd_agent import session
from smd_agent.framework.keras.types import Model
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.replicas import rank_and_size


@session.fence("watching Keras")
def _watch() -> None:
    # Here, because it needs parts of TensorFlow that are not public.
    from smd_agent.tensorflow.keras_fit.packages import watch_for_script

    watch_for_script()


class KerasHook(TensorflowHook):
    """Saves Keras trainings. Passing it in ``callbacks=`` is allowed and changes nothing.

    The mode follows the call: ``fit`` TRAIN, its validation and ``evaluate`` EVAL, ``predict`` PREDICT. ``set_mode`` is
    for the steps of loops with a tape.

    Args: see ``FrameworkHook``.

    Attributes:
        watch_keras: has Keras watched, called for each new hook; None where the agent does so when Keras is imported.
        strategy: the distribution strategy of the model that runs.
    """

    watch_keras: ClassVar[Callable[[], object] | None] = staticmethod(_watch)

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
        watch = type(self).watch_keras
        if watch is not None:
            watch()

    def model_runs(self, model: Model) -> None:
        """The strategy of the model whose steps follow tells which worker this is."""
        self.strategy = getattr(model, "distribute_strategy", None)

    def worker(self) -> tuple[int, int]:
        """Number of this process among the workers of the strategy that trains, and how many they are."""
        return rank_and_size(self.strategy)

    # What Keras calls.

    def set_params(self, params: object) -> None:
        """Not needed."""

    def set_model(self, model: object) -> None:
        """Not needed: every model is watched."""

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _nothing(self: KerasHook, *args: object, **kwargs: object) -> None:
    """Called by Keras; what it tells is known already."""


for _what in ("train", "test", "predict", "epoch", "batch", "train_batch", "test_batch", "predict_batch"):
    for _when in ("begin", "end"):
        setattr(KerasHook, f"on_{_what}_{_when}", _nothing)
