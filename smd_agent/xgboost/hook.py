"""The XGBoost hook: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import xgboost
from xgboost.callback import TrainingCallback

from smd_agent import guard
from smd_agent.config.settings import HookSettings
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.framework.hook import FrameworkHook
from smd_agent.xgboost.collection import BUILT_IN, DEFAULT_SAVED
from smd_agent.xgboost.data import as_matrix
from smd_agent.xgboost.products import Training
from smd_agent.xgboost.rounds import Rounds
from smd_agent.xgboost.worker import rank_and_size

if TYPE_CHECKING:
    from typing_extensions import Self


class Hook(FrameworkHook, TrainingCallback):
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
    default_saved = DEFAULT_SAVED
    default_save_interval = 10

    def __init__(
        self,
        out_dir: str | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        include_regex: str | Sequence[str] | None = None,
        include_collections: Iterable[Any] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        hyperparameters: Mapping[str, Any] | None = None,
        train_data: xgboost.DMatrix | tuple[str, str] | None = None,
        validation_data: xgboost.DMatrix | tuple[str, str] | None = None,
    ) -> None:
        self.hyperparameters = hyperparameters
        self.train_data = as_matrix(train_data)
        self.validation_data = as_matrix(validation_data)
        self._rounds: Rounds | None = None
        self._called = Training()
        super().__init__(
            out_dir=out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            save_config=save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
        )
        if reduction_config is not None:
            _tell_of_reductions()

    @classmethod
    def from_settings(cls, settings: HookSettings) -> Self:
        """Make a hook from settings that have been read; reductions in them are not used."""
        if settings.reduction_config or any(collection.reduction_config for collection in settings.collections):
            _tell_of_reductions()
        collections = tuple(replace(collection, reduction_config=None) for collection in settings.collections)
        return super().from_settings(replace(settings, reduction_config=None, collections=collections))

    # What XGBoost calls.

    def before_training(self, model: Any) -> Any:
        """Begin to count the rounds of a training that has this hook as its callback."""
        called, self._called = self._called, Training()
        self._rounds = Rounds(self, self.completed(replace(called, folds=hasattr(model, "cvfolds"))))
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

    # What the patch calls.

    def expect(self, training: Training) -> None:
        """Take note of a training that is about to begin with this hook as its callback."""
        self._called = training

    def completed(self, training: Training) -> Training:
        """A training as its call described it; what the hook was made with comes first."""
        return replace(
            training,
            hyperparameters=training.hyperparameters if self.hyperparameters is None else self.hyperparameters,
            train_data=training.train_data if self.train_data is None else self.train_data,
            validation_data=training.validation_data if self.validation_data is None else self.validation_data,
        )

    # What the saving of a round asks.

    def asks(self, collection: str, names: Iterable[str] | None = None) -> bool:
        """Whether the open step saves something of a built-in collection.

        ``names`` are the tensors it would be; without them the answer is yes as soon as a collection of the user's,
        which may want any name, is due.
        """
        due = self.collections_due()
        if collection in due or CollectionKeys.ALL in due:
            return True
        if all(key in BUILT_IN and key != CollectionKeys.DEFAULT for key in due):
            return False
        return names is None or any(self.wants(name) for name in names)

    def worker(self) -> tuple[int, int]:
        """Rank and number of workers, as XGBoost knows them when the first round is saved."""
        return rank_and_size()


def _tell_of_reductions() -> None:
    guard.say_once("reductions", "reductions are not made of what XGBoost gives: it is saved as it is")
