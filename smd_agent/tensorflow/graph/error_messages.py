"""Failures of operations in a variant of a function, told by TensorFlow as if the function itself had run."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import atomic_function

from smd_agent import guard
from smd_agent.framework.plain_access import is_a
from smd_agent.tensorflow.graph.function_rewrite import SUFFIX

_SUFFIX = re.compile(SUFFIX + r"_\d+")


class ToldAsOf:
    """A ``with`` block in which a variant runs.

    Args:
        concrete: the function whose variant it is.
    """

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give the message of a failed operation the function's name, and the lines that made the operation."""
        if is_a(error, tf.errors.OpError):
            error._message = _SUFFIX.sub("", error.message)
            # It says less where TensorFlow keeps this elsewhere.
            guard.attempt(lambda: self._interpolate(kind, error, at))

    def _interpolate(self, *raised: object) -> None:
        atomic_function.InterpolateRuntimeError(self._concrete._inference_function).__exit__(*raised)
