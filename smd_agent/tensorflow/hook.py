"""Base of the hooks for Keras, tapes, sessions and estimators."""

from __future__ import annotations

import weakref
from typing import ClassVar, Protocol, TypeVar

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.values import Captured
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.environment import facts
from smd_agent.tensorflow.types import Optimizer, Tape

T = TypeVar("T")
TapeT = TypeVar("TapeT", bound=Tape)


class Watching(Protocol):
    """Has what a script hands to a hook watched. Those who watch import the hook, so the package brings them along."""

    def tape(self, tape: Tape) -> None:
        """Watch this tape."""

    def optimizers(self) -> None:
        """Watch the optimizers of ``tf.compat.v1``."""


class TensorflowHook(KerasLogs):
    """Saves the tensors of a TensorFlow program by step and mode.

    Attributes:
        watching: has tapes and optimizers watched; set by the package.
        optimizers: Keras optimizers whose variables are saved with the steps of tapes.
    """

    collection_class = Collection
    facts = (facts, *KerasLogs.facts)
    watching: ClassVar[Watching]

    def set_up(self) -> None:
        """No optimizer has been wrapped yet."""
        super().set_up()
        self.optimizers: list[weakref.ref[Optimizer]] = []

    # What users call.

    def wrap_optimizer(self, optimizer: T) -> T:
        """Save the gradients that a ``tf.compat.v1`` optimizer computes, or the variables of a Keras one; returns it.

        Anything else is left alone, and one line says so.
        """
        if isinstance(optimizer, tf.compat.v1.train.Optimizer):
            self.watching.optimizers()
        elif hasattr(optimizer, "apply_gradients") and hasattr(optimizer, "variables"):
            self.optimizers.append(weakref.ref(optimizer))
        else:
            kind = type(optimizer).__name__
            guard.say_once(("wrap_optimizer", kind), f"a {kind} cannot be wrapped: nothing of it is saved")
        return optimizer

    def wrap_tape(self, tape: TapeT) -> TapeT:
        """Save the gradients that this ``tf.GradientTape`` computes; returns it.

        Not needed where the agent watches the program: then every tape is saved.
        """
        self.watching.tape(tape)
        return tape

    # What the core asks.

    def to_array(self, value: object) -> Captured | None:
        """A tensor, a variable or a gradient of rows as an array that may share its memory."""
        return to_array(value)
