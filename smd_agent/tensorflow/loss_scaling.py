"""Loss scaling of mixed precision: a tape sees a loss times some number, and gradients that are as many times too big.

Which loss was scaled is noted where it happens; the number is the optimizer's and is read from it, before the step
changes it. It is a power of two, so dividing by it loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from smd_agent.core.ports import Deferred
from smd_agent.framework.keras.optimizers import loss_scale_of
from smd_agent.framework.replaced_functions import replace
from smd_agent.tensorflow.arrays import Converted, to_array
from smd_agent.tensorflow.types import Function, Optimizer, Tensor

_METHODS = ("scale_loss", "get_scaled_loss")


@dataclass(frozen=True)
class Unscaled(Deferred):
    """A gradient to be divided by ``scale`` when it is read."""

    value: Any
    scale: float

    def read(self) -> Converted | None:
        """The gradient of the loss as it was before scaling."""
        found = to_array(self.value.read() if isinstance(self.value, Deferred) else self.value)
        return found and Converted(found[0] / found[0].dtype.type(self.scale), found[1])


def unscaled(gradient: object, scale: float) -> object:
    """The gradient of an unscaled loss; None stays None."""
    return gradient if scale == 1.0 or gradient is None else Unscaled(gradient, scale)


Note = Callable[[Optimizer, Tensor, Tensor], None]


def watch_scaling(owner: type, note: Note) -> None:
    """Have ``note(optimizer, loss, scaled)`` called whenever an optimizer of this class scales a loss.

    Keras 3 calls the method ``scale_loss``, Keras 2 ``get_scaled_loss``.
    """

    def noted(method: Function) -> Function:
        def scale(optimizer: Optimizer, loss: Tensor) -> Tensor:
            result: Tensor = method(optimizer, loss)
            if result is not loss and tf.is_tensor(loss) and tf.is_tensor(result):
                note(optimizer, loss, result)
            return result

        return scale

    for name in _METHODS:
        if vars(owner).get(name) is not None:
            replace(owner, name, noted, why="losses and gradients are saved as they are without scaling")


def scale_of(optimizer: Optimizer) -> float:
    """The number by which an optimizer multiplies losses now."""
    scale = loss_scale_of(optimizer)
    return 1.0 if scale is None else scale
