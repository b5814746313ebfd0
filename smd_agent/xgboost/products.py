"""What is saved of one boosting round, collection by collection; one that cannot be had does not cost the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xgboost

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.errors import SMDebugError
from smd_agent.xgboost.collection import FULL_SHAP, LABELS, PREDICTIONS
from smd_agent.xgboost.shap import Contributions
from smd_agent.xgboost.trees import tree_columns

if TYPE_CHECKING:
    from smd_agent.xgboost.hook import Hook

IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")
TREE_BOOSTERS = ("gbtree", "dart")

# By evaluation set and metric, the value of every round so far; of cross-validation, mean and standard deviation.
EvalsLog = Mapping[str, Mapping[str, list[Any]]]


class Unavailable(SMDebugError):
    """A collection cannot be had in this training; the text says why."""


@dataclass(frozen=True)
class Training:
    """What is known of a training beside its model.

    hyperparameters: by name; None if nobody said.
    train_data, validation_data: for SHAP values, and for predictions and labels.
    folds: it is a cross-validation, which has a model for each fold and none as a whole.
    """

    hyperparameters: Mapping[str, Any] | None = None
    train_data: xgboost.DMatrix | None = None
    validation_data: xgboost.DMatrix | None = None
    folds: bool = False


class Products:
    """Saves the rounds of one training."""

    def __init__(self, hook: Hook, training: Training) -> None:
        self._hook = hook
        self._training = training
        self._contributions: Contributions | None = None
        self._shap: npt.NDArray[np.float32] | None = None

    def save(self, model: Any, evals_log: EvalsLog) -> None:
        """Save what the hook's open step wants of a round."""
        savers: dict[str, Callable[[], None]] = {
            CollectionKeys.METRICS: partial(self._metrics, evals_log),
            CollectionKeys.HYPERPARAMETERS: self._hyperparameters,
            CollectionKeys.PREDICTIONS: partial(self._predictions, model),
            CollectionKeys.LABELS: self._labels,
            CollectionKeys.FEATURE_IMPORTANCE: partial(self._importance, model),
            CollectionKeys.TREES: partial(self._trees, model),
            CollectionKeys.AVERAGE_SHAP: partial(self._average_shap, model),
            CollectionKeys.FULL_SHAP: partial(self._full_shap, model),
        }
        self._shap = None
        # What XGBoost has to say about our calls would stand between the program's own output.
        with xgboost.config_context(verbosity=0):
            for collection, save in savers.items():
                failure = guard.attempt(save)
                if failure is not None:
                    self._hook.cannot_save(collection, _reason(failure))

    def _metrics(self, evals_log: EvalsLog) -> None:
        found = dict(_latest_metrics(evals_log))
        self._hook.save_tensors(tuple(found), [np.array([value], np.float64) for value in found.values()])
        if not found and self._hook.asks(CollectionKeys.METRICS):
            raise Unavailable("nothing is evaluated (evals of xgboost.train, eval_set of fit)")

    def _hyperparameters(self) -> None:
        if not self._hook.asks(CollectionKeys.HYPERPARAMETERS):
            return
        if self._training.hyperparameters is None:
            raise Unavailable("the hook was made without hyperparameters")
        found = {key: value for key, value in self._training.hyperparameters.items() if value is not None}
        self._hook.save_tensors(
            [f"hyperparameters/{key}" for key in found], [_as_parameter(value) for value in found.values()]
        )

    def _predictions(self, model: Any) -> None:
        if self._hook.asks(CollectionKeys.PREDICTIONS, [PREDICTIONS]):
            booster = self._one_model(model)
            data = self._rows(self._validation_data(), booster)
            self._hook.save_tensor_now(PREDICTIONS, booster.predict(data))

    def _labels(self) -> None:
        if self._hook.asks(CollectionKeys.LABELS, [LABELS]):
            self._hook.save_tensor_now(LABELS, self._validation_data().get_label())

    def _importance(self, model: Any) -> None:
        if not self._hook.asks(CollectionKeys.FEATURE_IMPORTANCE):
            return
        model = self._of_trees(model)
        found: dict[str, float] = {}
        for kind in IMPORTANCE_TYPES:
            scores = model.get_score(importance_type=kind)
            total = sum(scores.values())
            found.update((f"feature_importance/{kind}/{name}", score / (total or 1)) for name, score in scores.items())
        self._hook.save_tensors(tuple(found), [np.array([value], np.float64) for value in found.values()])

    def _average_shap(self, model: Any) -> None:
        if not self._hook.asks(CollectionKeys.AVERAGE_SHAP):
            return
        names = [f"average_shap/{name}" for name in feature_names(self._one_model(model))]
        if self._hook.asks(CollectionKeys.AVERAGE_SHAP, names):
            # The last column is the bias, which says nothing of a feature.
            values = self._shap_values(model)[..., :-1]
            means = np.abs(values).reshape(-1, len(names)).mean(axis=0, dtype=np.float64)
            self._hook.save_tensors(names, list(means.reshape(-1, 1)))

    def _full_shap(self, model: Any) -> None:
        if self._hook.asks(CollectionKeys.FULL_SHAP, [FULL_SHAP]):
            self._hook.save_tensor_now(FULL_SHAP, self._shap_values(model))

    def _shap_values(self, model: Any) -> npt.NDArray[np.float32]:
        """SHAP values of the round, computed once for all collections."""
        if self._shap is None:
            booster = self._of_trees(model)
            if self._training.train_data is None:
                raise Unavailable("the hook was made without train_data")
            if self._contributions is None:
                self._contributions = Contributions(self._rows(self._training.train_data, booster))
            self._shap = self._contributions.of(booster)
        return self._shap

    def _trees(self, model: Any) -> None:
        if not self._hook.asks(CollectionKeys.TREES):
            return
        model = self._of_trees(model)
        rounds = model.num_boosted_rounds()
        columns = tree_columns(model[rounds - 1 : rounds], number_of_trees(model))
        self._hook.save_tensors([f"trees/{name}" for name in columns], list(columns.values()))

    def _validation_data(self) -> xgboost.DMatrix:
        if self._training.folds:
            raise Unavailable("xgboost.cv trains a model for each fold")
        if self._training.validation_data is None:
            raise Unavailable(
                "there is no evaluation data (evals of xgboost.train, eval_set of fit, validation_data of the hook)"
            )
        return self._training.validation_data

    def _one_model(self, model: Any) -> xgboost.Booster:
        if self._training.folds:
            raise Unavailable("xgboost.cv trains a model for each fold")
        return model  # type: ignore[no-any-return]

    def _of_trees(self, model: Any) -> xgboost.Booster:
        booster = self._one_model(model)
        name = booster_name(booster)
        if name not in TREE_BOOSTERS:
            raise Unavailable(f"the booster {name} has no trees, allowed are {' and '.join(TREE_BOOSTERS)}")
        return booster

    def _rows(self, data: xgboost.DMatrix, model: xgboost.Booster) -> xgboost.DMatrix:
        """The data, if the model can safely predict from it."""
        if data.num_col() > model.num_features():
            # XGBoost does not look, and writes beyond its buffers.
            raise Unavailable(f"the data has {data.num_col()} features and the model {model.num_features()}")
        split = getattr(data, "data_split_mode", None)
        if split is not None and split().name == "COL" and self._hook.worker()[1] > 1:
            # Such a prediction needs all workers at once, of which perhaps only one saves.
            raise Unavailable("the columns of the data are split over several workers")
        return data


def booster_name(model: xgboost.Booster) -> str:
    """gbtree, dart or gblinear."""
    return str(_gradient_booster(model)["name"])


def number_of_trees(model: xgboost.Booster) -> int:
    """How many trees a tree booster has."""
    booster = _gradient_booster(model)
    booster = booster.get("gbtree", booster)
    return int(booster["gbtree_model_param"]["num_trees"])


def feature_names(model: xgboost.Booster) -> list[str]:
    """The model's names of its features, ``f0``, ``f1``, ... if the data had none."""
    return [*(model.feature_names or (f"f{i}" for i in range(model.num_features())))]


def _gradient_booster(model: xgboost.Booster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(model.save_config())["learner"]["gradient_booster"]
    return found


def _latest_metrics(evals_log: EvalsLog) -> Iterator[tuple[str, float]]:
    for data, metrics in evals_log.items():
        for metric, values in metrics.items():
            latest = values[-1]
            if isinstance(latest, tuple):
                yield f"{data}-{metric}-mean", latest[0]
                yield f"{data}-{metric}-std", latest[1]
            else:
                yield f"{data}-{metric}", latest


def _as_parameter(value: Any) -> Any:
    """A hyperparameter as something that has a place in the files: numbers and text stay, the rest is told in text."""
    if isinstance(value, (bool, int, float, str)):
        return np.array([value])
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        array = np.array([*value])
        if array.dtype.kind in "fiubU" and array.size:
            return array
    return np.array([str(value)])


def _reason(failure: Exception) -> str:
    """One line; XGBoost puts time and source file before its sentence and a stack trace behind it."""
    text = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
    start, mark, sentence = text.partition("] ")
    if mark and start.startswith("["):
        text = sentence.split(": ", 1)[-1]
    return text.rstrip(".")
