"""Loss scaling of mixed precision: a tape sees a loss times some number, and gradients that are as many times too big.

Which loss was scaled is noted where it happens; the number is the optimizer's and is read from it, before the step
changes it. It is a power of two, so dividing by it loses nothing.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

_METHODS = ("scale_loss", "get_scaled_loss")


@dataclass(frozen=True)
class Unscaled:
    """A gradient to be divided by ``scale`` when it is read."""

    value: Any
    scale: float


@dataclass(frozen=True)
class Scaled:
    """Where a scaled loss came from. ``loss`` is the name of a symbolic tensor, or an eager one."""

    loss: Any
    optimizer: weakref.ref[Any]


def watch_scaling(owner: Any, note: Callable[[Any, Any, Any], None]) -> None:
    """Have ``note(optimizer, loss, scaled)`` called whenever an optimizer of this class scales a loss.

    Keras 3 calls the method ``scale_loss``, Keras 2 ``get_scaled_loss``.
    """
    for name in _METHODS:
        method = vars(owner).get(name)
        if method is not None:
            setattr(owner, name, _noted(method, note))


def _noted(method: Callable[..., Any], note: Callable[[Any, Any, Any], None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def scale(optimizer: Any, loss: Any) -> Any:
        scaled = method(optimizer, loss)
        if scaled is not loss and tf.is_tensor(loss) and tf.is_tensor(scaled):
            note(optimizer, loss, scaled)
        return scaled

    return scale


def scale_of(optimizer: Any) -> float:
    """The number by which an optimizer multiplies losses now."""
    # Of Keras 3, dynamic and fixed, of Keras 2, and of Keras 3 before the optimizer is built.
    for name in ("dynamic_scale", "loss_scale_factor", "loss_scale", "initial_scale"):
        scale = getattr(optimizer, name, None)
        if scale is not None:
            return float(scale.numpy() if hasattr(scale, "numpy") else scale)
    return 1.0
