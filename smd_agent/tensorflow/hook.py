"""What the hooks for Keras, tapes, sessions and estimators have in common."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.values import Captured
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.graph_notes import watch_optimizers


class TensorflowHook(KerasLogs):
    """Saves the tensors of a TensorFlow program by step and mode.

    Attributes:
        optimizers: Keras optimizers whose variables are saved with the steps of tapes.
    """

    collection_class = Collection

    def set_up(self) -> None:
        """No optimizer has been wrapped yet."""
        super().set_up()
        self.optimizers: list[weakref.ref[Any]] = []

    def ever_wants_collection(self, name: str) -> bool:
        """Whether a collection is saved at some step."""
        return name in self.include_collections

    # What users call.

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the gradients that a ``tf.compat.v1`` optimizer computes, or the variables of a Keras one; returns it.

        Anything else is left alone, and one line says so.
        """
        if isinstance(optimizer, tf.compat.v1.train.Optimizer):
            watch_optimizers(optimizer)
        elif hasattr(optimizer, "apply_gradients") and hasattr(optimizer, "variables"):
            self.optimizers.append(weakref.ref(optimizer))
        else:
            kind = type(optimizer).__name__
            guard.say_once(("wrap_optimizer", kind), f"a {kind} cannot be wrapped: nothing of it is saved")
        return optimizer

    def wrap_tape(self, tape: Any) -> Any:
        """Save the gradients that this ``tf.GradientTape`` computes; returns it.

        Not needed where the agent watches the program: then every tape is saved.
        """
        try:
            from smd_agent.tensorflow.tape import the_watch
        except ImportError as error:
            line = f"tensorflow {tf.__version__}: GradientTape is not captured ({guard.describe(error)})"
            guard.say_once("no tapes", line)
            return tape
        return the_watch().wrap_tape(tape)

    # What the core asks.

    def to_array(self, value: Any) -> Captured | None:
        """A tensor, a variable or a gradient of rows as an array that may share its memory."""
        return to_array(value)
