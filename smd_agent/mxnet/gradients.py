"""The gradients of a saved step: which of them belong to it, and when they are read.

Of a parameter that a Trainer owns: what the Trainer is about to apply, that is after it has summed over the contexts
and workers, and after the script has clipped; before the division by the batch size, which the optimizer does itself.
If no Trainer has applied it by the end of the step (accumulation): as it stands then.
Of any other parameter: as it stands when ``backward`` returns, the last time if several passes of the step reach it.
In each case only if a backward pass of this step has reached the parameter; buffers keep old values otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.core.domains import GRADIENTS
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import Deferred
from smd_agent.framework.plain_access import attribute
from smd_agent.mxnet.arrays import fresh, set_fresh, to_array
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.structure import can_be_trained, gradients_of, is_sparse, trainer_of, values_of

Pair = tuple[str, Parameter]

_WITHOUT_GRADIENTS = (ModeKeys.EVAL, ModeKeys.PREDICT)


class Gradients:
    """What becomes of the gradients of one saved step."""

    def __init__(self, blocks: TrainedBlocks) -> None:
        self._blocks = blocks
        self._recorder = blocks.recorder
        self._reached: dict[int, Pair] = {}
        self._passed: set[int] = set()
        self._applied: set[int] = set()
        self._written: set[int] = set()

    def trained(self) -> list[Pair]:
        """The parameters that get a gradient."""
        return [pair for pair in self._blocks.parameters() if can_be_trained(pair[1])]

    def has_reached(self, parameter: Parameter) -> bool:
        """Whether a backward pass of this step has reached a parameter; of a sparse one, whether there was one."""
        return id(parameter) in self._passed

    @GRADIENTS.fence("looking at gradients before a backward pass")
    def before_backward(self) -> Freshness:
        """Note which gradients wait to be applied, so that those of this pass can be told from them."""
        return Freshness([array for _, parameter in self.trained() for array in values_of(parameter)])

    @GRADIENTS.fence("saving gradients after a backward pass")
    def after_backward(self, reached: set[int] | None) -> list[Pair] | None:
        """Take in what a backward pass has reached, and save what no Trainer will apply; returns the former.

        ``reached`` has the ids of the arrays with a gradient of the pass; None where that is not known.
        """
        if reached is None:
            return None
        now, found = [], []
        for name, parameter in self.trained():
            arrays = values_of(parameter)
            # A sparse parameter shows no state; a dense one that was not reached has an older gradient.
            if not is_sparse(parameter) and not any(id(array) in reached for array in arrays):
                continue
            self._passed.add(id(parameter))
            if id(parameter) in self._applied:
                continue
            self._reached[id(parameter)] = (name, parameter)
            found.append((name, parameter))
            if trainer_of(parameter) is None and len(arrays) <= 1:
                now.append((name, parameter))
        self._write(now)
        if reached and self._recorder.ever_saves("gradients") and self._recorder.mode in _WITHOUT_GRADIENTS:
            line = f"gradients of a backward pass in a step of mode {self._recorder.mode.name} are not saved"
            guard.say_once(("gradients", self._recorder.mode), line)
        return found

    @GRADIENTS.fence("saving the gradients that a Trainer applies")
    def before_update(self, trainer: Any, summed: bool) -> None:
        """Save what a Trainer is about to apply; ``summed``: all contexts hold the sum already."""
        pairs = [pair for pair in self._reached.values() if trainer_of(pair[1]) is trainer]
        self._applied.update(id(parameter) for _, parameter in pairs)
        self._write(pairs, summed, _loss_scale(trainer))

    @GRADIENTS.fence("saving gradients that no Trainer has applied")
    def at_end(self) -> None:
        """Save what has not been applied in this step."""
        self._write(list(self._reached.values()))

    def _write(self, pairs: Iterable[Pair], summed: bool = False, scale: float = 1.0) -> None:
        first: list[Pair] = []
        again: list[Pair] = []
        for pair in pairs:
            key = id(pair[1])
            self._reached.pop(key, None)
            (again if key in self._written else first).append(pair)
            self._written.add(key)
        for found, write in ((first, self._recorder.save_tensors), (again, self._recorder.replace_tensors)):
            if found:
                names = [f"gradient/{name}" for name, _ in found]
                write(names, [Gradient(parameter, summed, scale) for _, parameter in found])


class Freshness:
    """Which arrays have a gradient that has not been applied: MXNet's own flag, taken off during a backward pass.

    Without taking it off, a gradient of this pass could not be told from one that an earlier pass left.
    """

    def __init__(self, arrays: list[NDArray]) -> None:
        self._waiting = [(array, fresh(array)) for array in arrays]
        for array, is_waiting in self._waiting:
            if is_waiting:
                set_fresh(array, False)

    def restore(self) -> set[int]:
        """Put the flags back as they would be by now; the ids of those that the pass has set."""
        reached = set()
        for array, is_waiting in self._waiting:
            if fresh(array):
                reached.add(id(array))
            elif is_waiting:
                set_fresh(array, True)
        return reached


class Gradient(Deferred):
    """A parameter's gradient over all contexts, read only if it is saved."""

    __slots__ = ("_parameter", "_scale", "_summed")

    def __init__(self, parameter: Parameter, summed: bool, scale: float) -> None:
        self._parameter = parameter
        self._summed = summed
        self._scale = scale

    def read(self) -> NDArray | npt.NDArray[Any]:
        """The gradient of the whole batch, without a scale that mixed precision has put on the loss."""
        arrays = gradients_of(self._parameter)
        if self._scale == 1.0 and (self._summed or len(arrays) == 1):
            return arrays[0]
        values, _ = to_array(arrays[0])
        if not self._summed and len(arrays) > 1:
            values = functools.reduce(np.add, (to_array(array)[0] for array in arrays[1:]), values)
        return values if self._scale == 1.0 else values * values.dtype.type(self._scale)


def _loss_scale(trainer: Any) -> float:
    # amp.scale_loss multiplies the loss and tells the Trainer to divide by as much; amp.unscale takes both back.
    if attribute(trainer, "_amp_loss_scaler") is None:
        return 1.0
    return float(attribute(trainer, "_scale") / attribute(trainer, "_amp_original_scale"))
