"""Where Keras is noticed, whatever it computes with: on TensorFlow, its part of the TensorFlow patch is applied."""

from __future__ import annotations

from types import ModuleType

from smd_agent import guard
from smd_agent.patches.hook_of_run import wanted_settings


def apply(keras: ModuleType) -> None:
    """Have what the program trains with this Keras saved."""
    backend = "tensorflow"
    if not str(getattr(keras, "__version__", "2")).startswith("2"):
        backend = keras.backend.backend()
    if backend == "tensorflow":
        from smd_agent.patches.tensorflow import watch_keras

        watch_keras(keras)
    elif wanted_settings() is not None:
        line = f"Keras on the {backend} backend: fit, evaluate and predict are not captured, only on TensorFlow"
        guard.say_once(("keras backend", backend), line)
