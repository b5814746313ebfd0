"""The callback that saves the rounds of an XGBoost training; ``framework.boosting.rounds`` numbers them."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback
from xgboost.core import XGBoostError

from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.boosting import rounds
from smd_agent.framework.plain_access import attribute
from smd_agent.xgboost.plain_access import plain


class Rounds(rounds.Rounds, TrainingCallback):
    """A callback for one training.

    Should be the first callback of its training: XGBoost calls none after one that stops the training. (Before
    XGBoost 2 it keeps callbacks in a set, so a round that was missed for this reason is saved when training ends.)
    """

    _rounds_before: int | None = None
    _open: tuple[Any, int, Any] | None = None

    def before_training(self, model: Any) -> Any:
        """Find out the number of the first step."""
        self.begin(plain(model))
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Hand the last round to the disk; training ends where somebody has asked for that."""
        self.end_round()
        if self.stopper.ends:
            return True
        self._open = (model, epoch, evals_log)
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Count a round, and save it if it is due; training goes on."""
        self._count(model, epoch, evals_log)
        return False

    @STEPS.fence("saving a round")
    def _count(self, model: Any, epoch: int, evals_log: Any) -> None:
        self._open = None
        if self._rounds_before is None:
            # Asked before the first round, XGBoost would configure the model in a call of ours, and warn there.
            self._rounds_before = _rounds_of(model) - epoch - 1
        self.after_round(epoch, plain(model), evals_log)

    def after_training(self, model: Any) -> Any:
        """Put on disk what has been saved."""
        self.close()
        return model

    def save_missed_round(self) -> None:
        """Save the round that had begun, if it was made: a callback may also have ended the training before that."""
        if self._open is not None:
            model, epoch, evals_log = self._open
            try:
                rounds = _rounds_of(model)
            except XGBoostError:
                # The training has failed because the model cannot be configured.
                return
            # Of a training that ends in its first round it is taken that it began without any.
            if rounds == (self._rounds_before or 0) + epoch + 1:
                self._count(model, epoch, evals_log)
        self._open = None


def _rounds_of(model: Any) -> int:
    # What cross-validation calls a model is a list of them.
    folds = attribute(model, "cvfolds")
    first: Any = plain(model if folds is None else folds[0].bst)
    return int(first.num_boosted_rounds())
