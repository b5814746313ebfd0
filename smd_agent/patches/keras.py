"""Where Keras is noticed, whatever it computes with: on TensorFlow and PyTorch, their part of the patch is applied."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from smd_agent import guard
from smd_agent.patches.hook_of_run import wanted_settings, warn_at_exit_if_nothing_captured

_ENTRIES = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


def apply(keras: ModuleType) -> None:
    """Have what the program trains with this Keras saved."""
    backend = "tensorflow"
    if not str(getattr(keras, "__version__", "2")).startswith("2"):
        backend = keras.backend.backend()
    if backend == "tensorflow":
        from smd_agent.patches.tensorflow import watch_keras

        watch_keras(keras)
    elif backend == "torch":
        from smd_agent.patches import pytorch

        pytorch.watch_keras(keras)
    else:
        _tell_when_used(keras, backend)


def _tell_when_used(keras: ModuleType, backend: str) -> None:
    settings = wanted_settings()
    if settings is None:
        return
    told = threading.Event()
    line = f"Keras on the {backend} backend is not captured, only on TensorFlow and PyTorch: nothing of it is saved"

    def around(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def entered(*args: Any, **kwargs: Any) -> Any:
            if not told.is_set():
                told.set()
                guard.say(line)
            return method(*args, **kwargs)

        return entered

    for name in _ENTRIES:
        setattr(keras.Model, name, around(getattr(keras.Model, name)))
    warn_at_exit_if_nothing_captured(
        "model.fit of Keras on TensorFlow or PyTorch", settings, lambda: False, told.is_set
    )
