"""The XGBoost hook: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

from typing import Any

import xgboost
from xgboost.callback import TrainingCallback

from smd_agent.framework.boosting.hook import BoostingHook
from smd_agent.framework.boosting.library import Training
from smd_agent.framework.boosting.saved_round import SavedRounds
from smd_agent.framework.plain_access import attribute
from smd_agent.xgboost.collection import BUILT_IN
from smd_agent.xgboost.data import as_matrix
from smd_agent.xgboost.environment import facts
from smd_agent.xgboost.library import XGBoost
from smd_agent.xgboost.round_callback import Rounds
from smd_agent.xgboost.worker import place


class Hook(BoostingHook[xgboost.DMatrix | tuple[str, str]], TrainingCallback):
    """Saves the boosting rounds of XGBoost trainings; a callback of ``xgboost.train``, ``xgboost.cv`` and estimators.

    A step is a boosting round, counted in mode GLOBAL unless ``set_mode`` says otherwise.

    Args:
        out_dir, export_tensorboard, tensorboard_dir, dry_run: see ``FrameworkHook``.
        reduction_config: not used; what XGBoost gives is saved as it is.
        save_config: every 10 rounds if None.
        include_regex, include_collections, save_all, include_workers: see ``FrameworkHook``.
        hyperparameters: for the collection of that name; by name, numbers and text.
        train_data: rows to compute SHAP values for: a ``DMatrix``, or ``(local file, content type)``.
        validation_data: rows for ``predictions`` and ``labels``, given in the same ways.

    Raises:
        RuntimeError: there is no ``out_dir``.
        SMDebugError: the data cannot be used.
        SMDebugRuntimeError: ``out_dir`` holds a finished run.
    """

    built_in = BUILT_IN
    library = "XGBoost"
    facts = (facts,)
    as_data = staticmethod(as_matrix)
    rank_and_size = staticmethod(place)
    _rounds: Rounds | None = None

    def rounds(self, training: Training[Any]) -> Rounds:
        """The callback that saves the rounds of this training."""
        saved = SavedRounds(self.recorder, XGBoost(training), BUILT_IN, self.affordable)
        return Rounds(self.recorder, saved, self.rests, self.saved_of_last_round if self.saves_last else None)

    # What XGBoost calls.

    def before_training(self, model: Any) -> Any:
        """Begin to count the rounds of a training that has this hook as its callback."""
        self._rounds = self.rounds(self.expected(folds=attribute(model, "cvfolds") is not None))
        return self._rounds.before_training(model)

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Hand the last round to the disk."""
        return self._rounds is not None and self._rounds.before_iteration(model, epoch, evals_log)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Count a round, and save it if it is due."""
        return self._rounds is not None and self._rounds.after_iteration(model, epoch, evals_log)

    def after_training(self, model: Any) -> Any:
        """Put on disk what has been saved."""
        rounds, self._rounds = self._rounds, None
        return model if rounds is None else rounds.after_training(model)
