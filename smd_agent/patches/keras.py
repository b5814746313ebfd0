"""Patch of Keras, whatever it computes with: on TensorFlow and PyTorch, their part of it is applied."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

from smd_agent import guard
from smd_agent.framework.keras.fit_watch import ENTRIES
from smd_agent.framework.replaced_functions import Function, replace
from smd_agent.patches.hook_from_settings import wanted_settings
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured


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

    def around(original: Function) -> Function:
        def entered(*args: object, **kwargs: object) -> Any:
            if not told.is_set():
                told.set()
                guard.say(line)
            return original(*args, **kwargs)

        return entered

    for name in ENTRIES:
        replace(keras.Model, name, around, why="what is not captured is said when it is used")
    sign = "model.fit of Keras on TensorFlow or PyTorch"
    warn_at_exit_if_nothing_captured("keras", sign, settings, lambda: False, told.is_set)
