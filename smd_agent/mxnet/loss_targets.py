"""Targets of Gluon's losses; see ``framework.loss_targets``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet.gluon import loss as losses
from mxnet.ndarray import NDArray

from smd_agent.framework.flipped_targets import Images
from smd_agent.framework.loss_targets import LossTargets as AnyTargets
from smd_agent.framework.loss_targets import Target
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall
from smd_agent.framework.usage import Usage
from smd_agent.mxnet.arrays import arrays_in, plain, to_array

_LOSSES = (
    *(losses.SoftmaxCrossEntropyLoss, losses.SigmoidBinaryCrossEntropyLoss, losses.KLDivLoss, losses.L1Loss),
    *(losses.L2Loss, losses.HuberLoss, losses.HingeLoss, losses.SquaredHingeLoss, losses.LogisticLoss),
    losses.PoissonNLLLoss,
)


class LossTargets(AnyTargets):
    """The targets of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, Images(_as_floats))

    def numbers_in(self, inputs: Any) -> Iterator[npt.NDArray[Any]]:
        """Yield the dense inputs of a model."""
        for array in map(plain, arrays_in(inputs)):
            if array.stype == "default":
                yield to_array(array)[0]

    def target_of(self, call: LossCall) -> Target | None:
        """Return the target of a loss of ``gluon.loss``."""
        target = call.args[1] if len(call.args) > 1 else None
        is_known = type(call.loss) in _LOSSES and is_a(target, NDArray)
        return Target(type(call.loss).__name__, plain(target)) if is_known else None

    def compared(self, target: Target) -> dict[str, Any]:
        """Return how the elements of a dense target fit the images that the model was given."""
        return self._images.compared(to_array(target.values)[0]) if target.values.stype == "default" else {}


def _as_floats(part: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return part.astype(np.float32)
