"""A library of boosted trees in one training: what it gives, and why it does not give something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt

from smd_agent.errors import SMDebugError
from smd_agent.formats.series import ABSENT

M = TypeVar("M")
D = TypeVar("D")


class Unavailable(SMDebugError):
    """A collection cannot be had in this training; the text says why."""


@dataclass(frozen=True)
class Training(Generic[D]):
    """The facts of a training beside its model.

    hyperparameters: by name; None if unknown.
    train_data, validation_data: for SHAP values, and for predictions and labels.
    folds: it is a cross-validation, which has a model for each fold and none as a whole.
    call: arguments of its call by name, from which the library tells what its data is.
    """

    hyperparameters: Mapping[str, Any] | None = None
    train_data: D | None = None
    validation_data: D | None = None
    folds: bool = False
    call: Mapping[str, Any] = field(default_factory=dict)


class Library(Generic[M, D]):
    """A library in one training; its subclass knows the library's models ``M`` and its data ``D``.

    Args:
        training: what is known of the training.

    Attributes:
        training: the same.
        title: its name, for messages.
        evaluation_arguments: where a script names the data to evaluate, for messages.
        cross_validation: the library's function for it, for messages.
        without_labels: why data may have no labels, for messages.
        importance_types: the kinds of ``scores``.
    """

    title: ClassVar[str] = "the library"
    evaluation_arguments: ClassVar[str] = ""
    cross_validation: ClassVar[str] = ""
    without_labels: ClassVar[str] = "the evaluation data has none"
    importance_types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, training: Training[D]) -> None:
        self.training = training

    # What a library gives.

    def metrics(self, log: Any) -> Iterable[tuple[str, float]]:
        """Names and values of the round's metrics; the names are ``<evaluation set>-<metric>``."""
        raise NotImplementedError

    def latest(self, log: Any) -> list[float]:
        """The values of ``metrics`` alone; it is asked in each round."""
        return [float(value) for _, value in self.metrics(log)]

    def losses(self, log: Any) -> Iterable[str]:
        """Names of metrics that this training wants small, beside those that the library knows by their names."""
        return ()

    def training_loss(self, model: Any, metrics: Collection[str]) -> str | None:
        """The one among the names of metrics that is of the training data and of what the training makes small."""
        return None

    def learning_rate(self, model: Any) -> float:
        """The learning rate of the last round; ``ABSENT`` where it is not known."""
        return ABSENT

    @property
    def rate_may_change(self) -> bool:
        """True if something in the training may give a round another learning rate."""
        return True

    def predict(self, model: M, data: D) -> npt.NDArray[Any]:
        """The model's predictions for this data."""
        raise NotImplementedError

    def labels(self, data: D) -> npt.NDArray[Any]:
        """The labels of this data."""
        raise NotImplementedError

    def scores(self, model: M, kind: str) -> Mapping[str, float]:
        """Importance of the features by name, in any unit."""
        raise NotImplementedError

    def trees(self, model: M) -> Mapping[str, npt.NDArray[Any]]:
        """The trees of the round, as columns by name."""
        raise NotImplementedError

    def feature_names(self, model: M) -> list[str]:
        """The model's names of its features."""
        raise NotImplementedError

    def contributions(self, model: M, data: D) -> npt.NDArray[Any]:
        """SHAP values of shape (rows, ..., features + 1); the last column is the bias."""
        raise NotImplementedError

    def seconds_of_trees(self, model: M) -> float:
        """The seconds that ``trees`` will take, nearly; 0 where that is not known."""
        return 0.0

    def seconds_of_contributions(self, model: M, data: D) -> float:
        """The seconds that ``contributions`` will take, nearly; 0 where that is not known."""
        return 0.0

    def data_facts(self, model: Any, log: Any) -> Mapping[str, float]:
        """The facts of the labels and the evaluation sets that the training was called with, by name.

        Args:
            model: after its first round.
            log: the library's, of what was evaluated.
        """
        return {}

    def require_trees(self, model: M) -> None:
        """Nothing, if the model is made of trees.

        Raises:
            Unavailable: it is not.
        """

    def quiet(self) -> AbstractContextManager[Any]:
        """Keeps what the library has to say about our calls out of the program's output."""
        return nullcontext()

    def reason(self, failure: Exception) -> str:
        """The reason why something cannot be saved, in one line."""
        text = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        return text.rstrip(".")

    # What there must be for it, or else ``Unavailable`` is raised.

    def some_metrics(self, log: Any) -> dict[str, float]:
        """The metrics of a round by name, at least one."""
        found = dict(self.metrics(log))
        if not found:
            if self.training.call:
                # For one reason there is one sentence.
                self.validation_data()
            raise Unavailable(f"nothing is evaluated ({self.evaluation_arguments})")
        return found

    def one_model(self, model: Any) -> M:
        """The model, if the training has one as a whole."""
        self._require_one_model()
        return model  # type: ignore[no-any-return]

    def tree_model(self, model: Any) -> M:
        """The same, if it is made of trees."""
        one = self.one_model(model)
        self.require_trees(one)
        return one

    def validation_data(self) -> D:
        """The data that a model as a whole is evaluated with."""
        self._require_one_model()
        if self.training.validation_data is None:
            # A hook that sees no call is not told of the data in it.
            places = self.evaluation_arguments if self.training.call else "validation_data of the hook"
            raise Unavailable(f"there is no evaluation data ({places})")
        return self.training.validation_data

    def shap_data(self, model: Any) -> tuple[M, D]:
        """The model and the data of SHAP values."""
        trees = self.tree_model(model)
        if self.training.train_data is None:
            raise Unavailable("the hook was made without train_data")
        return trees, self.training.train_data

    def _require_one_model(self) -> None:
        if self.training.folds:
            raise Unavailable(f"{self.cross_validation} trains a model for each fold")
