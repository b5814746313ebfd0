"""Collections of one boosting round; one that fails is reported, the others are saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.domains import note_missing
from smd_agent.core.ports import StepWriter
from smd_agent.errors import SMDebugError
from smd_agent.framework.boosting.collection import FULL_SHAP, LABELS, PREDICTIONS
from smd_agent.framework.plain_access import elements_of, is_a, runs_program
from smd_agent.framework.training_facts import DATA_FACTS

M = TypeVar("M")
D = TypeVar("D")

# What NumPy and ``str`` may call.
_LOOKED_AT_BY = (
    *("__str__", "__repr__", "__iter__", "__len__", "__getitem__", "__getattribute__", "__getattr__", "__float__"),
    *("__array__", "__array_interface__", "__int__", "__index__"),
)
# Numbers and text of classes of the program's, without what these override.
_PLAINLY: dict[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}


class Unavailable(SMDebugError):
    """A collection cannot be had in this training; the text says why."""


@dataclass(frozen=True)
class Training(Generic[D]):
    """What is known of a training beside its model.

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


class Products(Generic[M, D]):
    """Saves the rounds of one training; a library's subclass knows its models ``M`` and its data ``D``.

    Args:
        writer: takes the values of the open step.
        training: what is known of the training.
        built_in: the library's collections; of others nothing is saved.

    Attributes:
        evaluation_arguments: where a script names the data to evaluate, for messages.
        cross_validation: the library's function for it, for messages.
        without_labels: why data may have no labels, for messages.
        importance_types: the kinds of ``scores``.
    """

    evaluation_arguments: ClassVar[str] = ""
    cross_validation: ClassVar[str] = ""
    without_labels: ClassVar[str] = "the evaluation data has none"
    importance_types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, writer: StepWriter, training: Training[D], built_in: Mapping[str, Any]) -> None:
        self.training = training
        self._writer = writer
        self._built_in = built_in
        self._shap: npt.NDArray[Any] | None = None
        self._has_data_facts = False
        self._is_noted = False

    def save(self, model: Any, log: Any) -> None:
        """Save what the open step wants of a round.

        Args:
            model: the library's model, or what it has in its place in a cross-validation.
            log: what the library tells a callback of the round's metrics.
        """
        savers: dict[str, Callable[[], None]] = {
            CollectionKeys.METRICS: partial(self._metrics, log),
            CollectionKeys.LOSSES: partial(self._losses, log),
            CollectionKeys.HYPERPARAMETERS: self._hyperparameters,
            CollectionKeys.DATA_FACTS: partial(self._data_facts, model),
            CollectionKeys.PREDICTIONS: partial(self._predictions, model),
            CollectionKeys.LABELS: self._labels,
            CollectionKeys.FEATURE_IMPORTANCE: partial(self._importance, model),
            CollectionKeys.TREES: partial(self._trees, model),
            CollectionKeys.AVERAGE_SHAP: partial(self._average_shap, model),
            CollectionKeys.FULL_SHAP: partial(self._full_shap, model),
        }
        self._shap = None
        with self.quiet():
            self._note_what_there_is_not(model, log)
            failures: dict[str, list[str]] = {}
            for collection, save in savers.items():
                failure = guard.attempt(save) if collection in self._built_in else None
                if failure is not None:
                    failures.setdefault(self.reason(failure), []).append(collection)
                    if not isinstance(failure, Unavailable):
                        note_missing(collection, failure)
                    # What is saved once is not saved in a later round after it was said that it cannot be.
                    self._has_data_facts |= collection == CollectionKeys.DATA_FACTS
        for reason, collections in failures.items():
            self._writer.cannot_save(collections, reason)

    def _note_what_there_is_not(self, model: Any, log: Any) -> None:
        """Have the run say it of all collections, in the first round of a training that is saved."""
        if self._is_noted:
            return
        self._is_noted = True
        needs: dict[str, Callable[[], object]] = {
            CollectionKeys.METRICS: partial(self._some_metrics, log),
            CollectionKeys.LOSSES: partial(self._some_losses, log),
            CollectionKeys.HYPERPARAMETERS: self._some_hyperparameters,
            CollectionKeys.PREDICTIONS: self._validation_data,
            CollectionKeys.LABELS: self._validation_data,
            CollectionKeys.FEATURE_IMPORTANCE: partial(self._of_trees, model),
            CollectionKeys.TREES: partial(self._of_trees, model),
            CollectionKeys.AVERAGE_SHAP: partial(self._data_for_shap, model),
            CollectionKeys.FULL_SHAP: partial(self._data_for_shap, model),
        }
        for collection, need in needs.items():
            failure = guard.attempt(need)
            if isinstance(failure, Unavailable):
                self._writer.cannot_have([collection], self.reason(failure))

    # What a library gives.

    def metrics(self, log: Any) -> Iterable[tuple[str, float]]:
        """Names and values of the round's metrics; the names are ``<evaluation set>-<metric>``."""
        raise NotImplementedError

    def losses(self, log: Any) -> Iterable[str]:
        """Names of metrics that this training wants small, beside those that the library knows by their names."""
        return ()

    def predict(self, model: M, data: D) -> npt.NDArray[Any]:
        """What the model predicts of this data."""
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

    def data_facts(self, model: Any) -> Mapping[str, float]:
        """What is known of the labels and the evaluation sets that the training was called with, by name."""
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
        """Why something cannot be saved, in one line."""
        text = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        return text.rstrip(".")

    # How it is saved.

    def _asks(self, collection: str, names: Iterable[str] | None = None) -> bool:
        """Whether the open step saves something of a built-in collection.

        ``names`` are the tensors it would be; without them the answer is yes as soon as a collection of the user's,
        which may want any name, is due.
        """
        due = self._writer.collections_due()
        if collection in due or CollectionKeys.ALL in due:
            return True
        if all(key in self._built_in and key != CollectionKeys.DEFAULT for key in due):
            return False
        return names is None or any(self._writer.wants(name) for name in names)

    def _save_numbers(self, found: Mapping[str, float]) -> None:
        self._writer.save_tensors(tuple(found), [np.array([value], np.float64) for value in found.values()])

    def _metrics(self, log: Any) -> None:
        for name in self.losses(log):
            self._writer.place(CollectionKeys.LOSSES, name)
        self._save_numbers(dict(self.metrics(log)))
        if self._asks(CollectionKeys.METRICS):
            self._some_metrics(log)

    def _some_metrics(self, log: Any) -> None:
        if not dict(self.metrics(log)):
            if self.training.call:
                # For one reason there is one sentence.
                self._validation_data()
            raise Unavailable(f"nothing is evaluated ({self.evaluation_arguments})")

    def _losses(self, log: Any) -> None:
        # They are saved as metrics are.
        if self._asks(CollectionKeys.LOSSES, ()):
            self._some_losses(log)

    def _some_losses(self, log: Any) -> None:
        self._some_metrics(log)
        found = [name for name, _ in self.metrics(log)]
        known = [re.compile(regex) for regex in self._built_in[CollectionKeys.LOSSES]]
        if not any(self.losses(log)) and not any(regex.search(name) for regex in known for name in found):
            metrics = dict.fromkeys(re.sub("-(?:mean|std)$", "", name.partition("-")[2]) for name in found)
            raise Unavailable(f"of {', '.join(metrics)} it is not known that less is better")

    def _hyperparameters(self) -> None:
        if not self._asks(CollectionKeys.HYPERPARAMETERS):
            return
        found = {key: value for key, value in self._some_hyperparameters().items() if value is not None}
        self._writer.save_tensors(
            [f"hyperparameters/{key}" for key in found], [_as_parameter(value) for value in found.values()]
        )

    def _some_hyperparameters(self) -> Mapping[str, Any]:
        if self.training.hyperparameters is None:
            raise Unavailable("the hook was made without hyperparameters")
        return self.training.hyperparameters

    def _data_facts(self, model: Any) -> None:
        if not self._has_data_facts and self._asks(CollectionKeys.DATA_FACTS):
            self._has_data_facts = True
            self._save_numbers({f"{DATA_FACTS}{name}": number for name, number in self.data_facts(model).items()})

    def _predictions(self, model: Any) -> None:
        if self._asks(CollectionKeys.PREDICTIONS, [PREDICTIONS]):
            one = self._one_model(model)
            self._writer.save_tensor_now(PREDICTIONS, self.predict(one, self._validation_data()))

    def _labels(self) -> None:
        if self._asks(CollectionKeys.LABELS, [LABELS]):
            labels = self.labels(self._validation_data())
            if not labels.size:
                raise Unavailable(self.without_labels)
            self._writer.save_tensor_now(LABELS, labels)

    def _importance(self, model: Any) -> None:
        if not self._asks(CollectionKeys.FEATURE_IMPORTANCE):
            return
        trees = self._of_trees(model)
        found: dict[str, float] = {}
        for kind in self.importance_types:
            scores = self.scores(trees, kind)
            total = sum(scores.values())
            found.update((f"feature_importance/{kind}/{name}", score / (total or 1)) for name, score in scores.items())
        self._save_numbers(found)

    def _trees(self, model: Any) -> None:
        if self._asks(CollectionKeys.TREES):
            columns = self.trees(self._of_trees(model))
            self._writer.save_tensors([f"trees/{name}" for name in columns], list(columns.values()))

    def _average_shap(self, model: Any) -> None:
        if not self._asks(CollectionKeys.AVERAGE_SHAP):
            return
        names = [f"average_shap/{name}" for name in self.feature_names(self._one_model(model))]
        if self._asks(CollectionKeys.AVERAGE_SHAP, names):
            # The last column is the bias, which says nothing of a feature.
            values = self._shap_values(model)[..., :-1]
            means = np.abs(values).reshape(-1, len(names)).mean(axis=0, dtype=np.float64)
            self._writer.save_tensors(names, list(means.reshape(-1, 1)))

    def _full_shap(self, model: Any) -> None:
        if self._asks(CollectionKeys.FULL_SHAP, [FULL_SHAP]):
            self._writer.save_tensor_now(FULL_SHAP, self._shap_values(model))

    def _shap_values(self, model: Any) -> npt.NDArray[Any]:
        """SHAP values of the round, computed once for all collections."""
        if self._shap is None:
            self._shap = self.contributions(*self._data_for_shap(model))
        return self._shap

    def _data_for_shap(self, model: Any) -> tuple[M, D]:
        trees = self._of_trees(model)
        if self.training.train_data is None:
            raise Unavailable("the hook was made without train_data")
        return trees, self.training.train_data

    def _validation_data(self) -> D:
        self._require_one_model()
        if self.training.validation_data is None:
            # A hook that sees no call is not told of the data in it.
            places = self.evaluation_arguments if self.training.call else "validation_data of the hook"
            raise Unavailable(f"there is no evaluation data ({places})")
        return self.training.validation_data

    def _one_model(self, model: Any) -> M:
        self._require_one_model()
        return model  # type: ignore[no-any-return]

    def _require_one_model(self) -> None:
        if self.training.folds:
            raise Unavailable(f"{self.cross_validation} trains a model for each fold")

    def _of_trees(self, model: Any) -> M:
        one = self._one_model(model)
        self.require_trees(one)
        return one


def _as_parameter(value: Any) -> npt.NDArray[Any]:
    """A hyperparameter as something that has a place in the files: numbers and text stay, the rest is told in text."""
    kind = type(value)
    for base, plainly in _PLAINLY.items():
        if issubclass(kind, base):
            return np.array([value if kind in (base, bool) else plainly(value)])
    if is_a(value, (list, tuple)):
        value = [*elements_of(value)]
    elif runs_program(kind, *_LOOKED_AT_BY):
        return np.array([f"<{kind.__name__}>"])
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        array = np.array([_part(part) for part in value])
        if array.dtype.kind in "fiubU" and array.size:
            return array
    return np.array([str(value)])


def _part(value: Any) -> Any:
    """A part of a list: itself, or the name of its class if to look at it runs something of the program's."""
    return f"<{type(value).__name__}>" if runs_program(type(value), *_LOOKED_AT_BY) else value
