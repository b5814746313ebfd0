"""The hook of boosted trainings: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from smd_agent import guard
from smd_agent.config.settings import HookSettings
from smd_agent.core.reduction_config import SMALL, STATISTICS, ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.framework.boosting.affordable import Affordable
from smd_agent.framework.boosting.built_in_collections import DEFAULT_SAVED
from smd_agent.framework.boosting.library import Training
from smd_agent.framework.boosting.rounds import Rounds
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.series_pauses import StepsAtRest

DEFAULT_SAVE_INTERVAL = 10

G = TypeVar("G")


class BoostingHook(FrameworkHook, Generic[G]):
    """Saves the boosting rounds of a library's trainings, each as a step; ``G`` is the data that a script may give.

    Args:
        out_dir, export_tensorboard, tensorboard_dir, dry_run: see ``FrameworkHook``.
        reduction_config: not used; what the library gives is saved as it is.
        save_config: every 10 rounds if None.
        include_regex, include_collections, save_all, include_workers: see ``FrameworkHook``.
        hyperparameters: for the collection of that name; by name, numbers and text.
        train_data: rows to compute SHAP values for.
        validation_data: rows for ``predictions`` and ``labels``.
        made_from: see ``FrameworkHook``.

    Attributes:
        library: its name in messages.
        affordable: saves what nobody asked for by name, as far as that takes little time; None: all is saved.
        rests: between the rows of the run's series.
    """

    default_saved = DEFAULT_SAVED
    default_save_interval = DEFAULT_SAVE_INTERVAL
    library: ClassVar[str] = ""

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
        train_data: G | None = None,
        validation_data: G | None = None,
        *,
        made_from: HookSettings | None = None,
    ) -> None:
        self.hyperparameters = hyperparameters
        self.train_data = self.as_data(train_data)
        self.validation_data = self.as_data(validation_data)
        self.affordable: Affordable | None = None
        self._expected: Training[Any] = Training()
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
            made_from=made_from,
        )
        if reduction_config is not None:
            self._tell_of_reductions()

    @classmethod
    def followed(cls, settings: HookSettings) -> HookSettings:
        """Settings without their reductions, which are not used; one line says so."""
        forms = (settings.reduction_config, *(collection.reduction_config for collection in settings.collections))
        # Statistics are what the launcher asks for where the user has said nothing.
        if any(
            form not in (None, ReductionConfig([STATISTICS], save_shape=True, save_raw_up_to=SMALL)) for form in forms
        ):
            cls._tell_of_reductions()
        collections = tuple(replace(collection, reduction_config=None) for collection in settings.collections)
        return replace(settings, reduction_config=None, collections=collections)

    def set_up(self) -> None:
        """Leave out what takes long, where the configuration says so."""
        budget = self.recorder.series.budget
        self.rests = StepsAtRest(budget)
        if self.made_from is not None and self.made_from.within_budget:
            self.affordable = Affordable(self.selection.is_named, self.selection.left_out, budget=budget)

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk, and say what was left out."""
        if self.writing and self.affordable is not None:
            self.affordable.tell()
        super().finish(end_marker)

    def saved_of_last_round(self) -> list[str]:
        """The collections that the last round of a training saves in any case, as far as there is time for that."""
        early = self.collection_manager.early
        return self.include_collections if early is None or early.has_time() else []

    # What a library gives.

    @staticmethod
    def as_data(data: G | None) -> Any:
        """The library's data that a script means."""
        return data

    @staticmethod
    def rank_and_size() -> tuple[int, int]:
        """Rank of this worker and number of workers, as the library knows them."""
        return 0, 1

    def rounds(self, training: Training[Any]) -> Rounds:
        """The callback that saves the rounds of this training, complete with what the hook was made with."""
        raise NotImplementedError

    # What the patch and the library's callbacks call.

    def begin_training(self, training: Training[Any]) -> Rounds:
        """The callback that saves the rounds of a training as its call described it."""
        return self.rounds(self._completed(training))

    def expect(self, training: Training[Any]) -> None:
        """Take note of a training that is about to begin with this hook as its callback."""
        self._expected = training

    def expected(self, folds: bool) -> Training[Any]:
        """The training that has begun with this hook as its callback, for ``rounds``."""
        training, self._expected = self._expected, Training()
        return self._completed(replace(training, folds=folds))

    def worker(self) -> tuple[int, int]:
        """Rank and number of workers, as the library knows them when the first round is saved."""
        return self.rank_and_size()

    def _completed(self, training: Training[Any]) -> Training[Any]:
        """A training as its call described it; what the hook was made with comes first."""
        return replace(
            training,
            hyperparameters=training.hyperparameters if self.hyperparameters is None else self.hyperparameters,
            train_data=training.train_data if self.train_data is None else self.train_data,
            validation_data=training.validation_data if self.validation_data is None else self.validation_data,
        )

    @classmethod
    def _tell_of_reductions(cls) -> None:
        guard.say_once("reductions", f"reductions are not made of what {cls.library} gives: it is saved as it is")
