"""TensorFlow's compiled steps for the observer of `verify`; this file imports nothing of the package.

What is trained is seen by Keras's optimizers, whose part asks after each of these calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

if TYPE_CHECKING:
    from smd_agent.framework.observer import Observer


def watch(module: Any, observer: Observer) -> None:
    """Have losses of eager tapes noted, and listeners told of calls of compiled functions."""

    def before_gradient(tape: object, target: Any = None, *args: Any, **kwargs: Any) -> None:
        if tf.executing_eagerly():
            for tensor in tf.nest.flatten(target):
                if hasattr(tensor, "numpy"):
                    observer.loss("loss", observer.array(tensor.numpy()))

    def after_call(result: Any, *args: Any, **kwargs: Any) -> None:
        if tf.executing_eagerly():
            for listener in observer.listeners:
                listener(result)

    observer.is_eager = tf.executing_eagerly
    observer.generator("TensorFlow", _state)
    gradient = observer.around(tf.GradientTape, "gradient", before_gradient)
    # Else AutoGraph would compile it, and with it what it calls.
    gradient.autograph_info__ = None
    observer.around(Function, "__call__", after=after_call)


def _state() -> bytes | None:
    generator = getattr(context.context(), "_rng", None)
    return None if generator is None else repr(generator.getstate()).encode()
