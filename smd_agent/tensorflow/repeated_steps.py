"""Steps of a training that ``replay`` has done again: of Keras and of tapes, watched where they are to be.

From a step on, functions run operation by operation: ``tf.config.run_functions_eagerly`` is asked in each call of a
``tf.function``, so that one that was compiled, also by XLA, does so from then on. What is differentiated is seen in
``GradientTape.gradient``, in ``fit`` as in a loop of the program's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from smd_agent import session
from smd_agent.core.hook import BaseHook
from smd_agent.core.modes import ModeKeys
from smd_agent.core.recorder import Recorder
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.repeated_training import RepeatedTraining
from smd_agent.framework.replaced_functions import Function, replace
from smd_agent.framework.value_makers import kind_of
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.tape_rows import TapeRows
from smd_agent.tensorflow.types import Nested, Tape
from smd_agent.tensorflow.variable_names import is_variable, plain_name
from smd_agent.tensorflow.watched_operations import WatchedOperations

# It is said of each dataset that is made while functions run eagerly.
_OF_DATASETS = "Even though the `tf.config.experimental_run_functions_eagerly`"


class RepeatedSteps:
    """Those of this process.

    Args:
        text: of the order.
    """

    def __init__(self, text: str) -> None:
        self._training = RepeatedTraining(text)
        self._operations = WatchedOperations(self._training.makers)

    def install(self) -> None:
        """Look at what tapes differentiate; called once, before there is a step."""
        warnings.filterwarnings("ignore", message=_OF_DATASETS)
        # For the same reason as in any training: the table of what is replaced is of those.
        why = "steps are counted by gradients, which are saved"
        replace(tf.GradientTape, "gradient", self._around_gradient, why=why)
        self.before_tapes(0)

    def rows(self, recorder: Recorder) -> TapeRows:
        """The numbers of steps with tapes, which tell when one has ended."""
        return _RepeatedRows(recorder, self.before_tapes)

    def pauses(self, enters: bool) -> None:
        """A step of Keras's is about to run, or has run.

        Raises:
            TrainingStopped: it is the one.
        """
        position = _position()
        if position is None or position.clock.mode is not ModeKeys.TRAIN:
            self._operations.end()
        elif enters:
            step = position.clock.step
            if not self._training.watches(step):
                self._operations.end()
                return
            self._training.step_begins(step)
            self._operations.begin()
        else:
            self._operations.end()
            if self._training.passed:
                self._training.step_ends()

    def before_tapes(self, step: int) -> None:
        """A training step is the next one, unless it is of Keras's."""
        if self._training.watches(step):
            self._operations.begin()

    # How it is done.

    def _around_gradient(self, gradient: Function) -> Function:
        operations = self._operations

        def computed(tape: Tape, target: Nested, sources: Nested, *args: object, **kwargs: object) -> Nested:
            is_outer = not operations.in_backward and tf.executing_eagerly()
            operations.in_backward = operations.in_backward or is_outer
            try:
                result: Nested = gradient(tape, target, sources, *args, **kwargs)
            finally:
                operations.in_backward = operations.in_backward and not is_outer
            if is_outer:
                self._differentiated(target, sources, result)
            return result

        return computed

    def _differentiated(self, target: Nested, sources: Nested, gradients: Nested) -> None:
        """A tape has computed gradients; in a step that is watched, and of variables, this tells how it goes."""
        pairs = [*zip(tf.nest.flatten(sources), _flat(gradients), strict=False)]
        position = _position()
        if position is None or not any(is_variable(one) for one, _ in pairs):
            return
        step = position.clock.step
        if not position.inside:
            if step > self._training.step >= 0:
                self._training.step_ends()
            if not self._training.watches(step):
                return
            self._training.step_is(step)
        for tensor in tf.nest.flatten(target):
            number = _mean(tensor)
            if number is not None:
                self._training.loss_is(tensor, number)
        bad = [(plain_name(one), part) for one, part in pairs if is_variable(one) and _is_bad(part)]
        self._training.gradients_are(bad)
        self._operations.forget()
        if self._training.is_over and not position.inside:
            self._training.step_ends()


class _RepeatedRows(TapeRows):
    """Numbers of steps with tapes, which tell that the next step is about to begin."""

    def __init__(self, recorder: Recorder, next_begins: Callable[[int], object]) -> None:
        super().__init__(recorder)
        self._position = recorder.position
        self._next_begins = next_begins

    def differentiated(self, targets: Iterable[Any]) -> None:
        """A tape has differentiated."""
        super().differentiated(targets)
        self._next_begins(self._position.clock.step + 1)

    def computed(self, losses: Iterable[Any] | None) -> None:
        """A compiled step has ended."""
        super().computed(losses)
        self._next_begins(self._position.clock.step + 1)


def _position() -> Any:
    hook: BaseHook | None = session.current_of(BaseHook)
    return None if hook is None else hook.position


def _flat(gradients: Nested) -> list[Any]:
    return [one.values if is_a(one, tf.IndexedSlices) else one for one in _leaves(gradients)]


def _leaves(gradients: Nested) -> list[Any]:
    # Else flattening takes the parts of each for gradients.
    return tf.nest.flatten(gradients, expand_composites=False)  # type: ignore[no-any-return]


def _mean(tensor: object) -> float | None:
    found = to_array(tensor) if is_a(tensor, tf.Tensor) and tensor.dtype.is_floating else None
    if found is None or not is_a(found[0], np.ndarray) or not found[0].size:
        return None
    with np.errstate(all="ignore"):
        return float(np.mean(found[0], dtype=np.float64))


def _is_bad(tensor: object) -> bool:
    found = to_array(tensor) if is_a(tensor, tf.Tensor) else None
    return found is not None and bool(kind_of(found[0]))
