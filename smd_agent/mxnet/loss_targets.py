"""Targets of Gluon's losses; see ``framework.loss_targets``."""

from __future__ import annotations

from mxnet.gluon import loss as losses
from mxnet.ndarray import NDArray

from smd_agent.framework.loss_targets import LossTargets as AnyTargets
from smd_agent.framework.loss_targets import Target
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LossCall
from smd_agent.mxnet.arrays import plain

_LOSSES = (
    *(losses.SoftmaxCrossEntropyLoss, losses.SigmoidBinaryCrossEntropyLoss, losses.KLDivLoss, losses.L1Loss),
    *(losses.L2Loss, losses.HuberLoss, losses.HingeLoss, losses.SquaredHingeLoss, losses.LogisticLoss),
    losses.PoissonNLLLoss,
)


class LossTargets(AnyTargets):
    """The targets of losses of one step that is saved."""

    def target_of(self, call: LossCall) -> Target | None:
        """Return the target of a loss of ``gluon.loss``."""
        target = call.args[1] if len(call.args) > 1 else None
        is_known = type(call.loss) in _LOSSES and is_a(target, NDArray)
        return Target(type(call.loss).__name__, plain(target)) if is_known else None
