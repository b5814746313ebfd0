"""XGBoost in one training."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost
from xgboost.callback import EarlyStopping, EvaluationMonitor, TrainingCheckPoint

from smd_agent.formats.series import ABSENT
from smd_agent.framework.boosting.hook import BoostingHook
from smd_agent.framework.boosting.library import Library, Training, Unavailable
from smd_agent.framework.plain_access import is_a
from smd_agent.xgboost.data_facts import data_facts_of
from smd_agent.xgboost.directions import wanted_small
from smd_agent.xgboost.objectives import learning_rate_of, objective_metrics
from smd_agent.xgboost.plain_access import is_same, plain
from smd_agent.xgboost.shap import Contributions
from smd_agent.xgboost.trees import tree_columns
from smd_agent.xgboost.worker import rank_and_size

TREE_BOOSTERS = ("gbtree", "dart")
# Callbacks of XGBoost that leave the learning rate as it is.
_SET_NO_RATE = (EarlyStopping, EvaluationMonitor, TrainingCheckPoint)
# A node of a tree, from the dump to the columns.
_SECONDS_OF_NODE = 20e-6
# Releases before keep callbacks in a set.
_CALLS_IN_ORDER = int(xgboost.__version__.partition(".")[0]) >= 2

# By evaluation set and metric, the value of every round so far; of cross-validation, mean and standard deviation.
EvalsLog = Mapping[str, Mapping[str, list[Any]]]


class XGBoost(Library[xgboost.Booster, xgboost.DMatrix]):
    """Models, metrics and data of one training with XGBoost."""

    title = "XGBoost"
    evaluation_arguments = "evals of xgboost.train, eval_set of fit"
    cross_validation = "xgboost.cv"
    without_labels = "the evaluation data has none (survival:aft is trained by label_lower_bound, label_upper_bound)"
    importance_types = ("weight", "gain", "cover", "total_gain", "total_cover")

    def __init__(self, training: Training[xgboost.DMatrix]) -> None:
        super().__init__(_plain(training))
        self._contributions: Contributions | None = None

    def metrics(self, log: EvalsLog) -> Iterator[tuple[str, float]]:
        """The last entries of the log."""
        for data, metrics in log.items():
            for metric, values in metrics.items():
                latest = values[-1]
                if type(latest) is tuple:
                    yield f"{data}-{metric}-mean", latest[0]
                    yield f"{data}-{metric}-std", latest[1]
                else:
                    yield f"{data}-{metric}", latest

    def latest(self, log: EvalsLog) -> list[float]:
        """The last entries without their names."""
        found = [values[-1] for metrics in log.values() for values in metrics.values()]
        return super().latest(log) if tuple in map(type, found) else [*map(float, found)]

    def losses(self, log: EvalsLog) -> Iterator[str]:
        """Those that early stopping wants small."""
        small = wanted_small(self.training.call, log)
        for name, _ in self.metrics(log):
            metric = name.partition("-")[2]
            if metric in small or (metric.endswith("-mean") and metric.removesuffix("-mean") in small):
                yield name

    def training_loss(self, model: Any, metrics: Collection[str]) -> str | None:
        """The metric of the training's objective, of the set that is the training data."""
        call, end = self.training.call, "-mean" if self.training.folds else ""
        if call.get("obj") is not None:
            return None
        own = ["train"] if end else [name for rows, name in call.get("evals", ()) if is_same(rows, call["dtrain"])]
        for name in own:
            of_set = [metric[len(name) + 1 :].removesuffix(end) for metric in metrics if metric.startswith(f"{name}-")]
            for metric in objective_metrics(self._first_model(model), of_set):
                return f"{name}-{metric}{end}"
        return None

    def learning_rate(self, model: Any) -> float:
        """The rate in the model's configuration; of a cross-validation, in that of its first fold.

        A schedule sets that of the next round when one has ended: who looks after it sees the wrong one.
        """
        setters, before_us = self._rate_setters()
        looks_first = not before_us and (not setters or _CALLS_IN_ORDER)
        return learning_rate_of(self._first_model(model)) if self.training.call and looks_first else ABSENT

    @property
    def rate_may_change(self) -> bool:
        """True if a callback of the program's may set it."""
        return bool(self._rate_setters()[0])

    def _rate_setters(self) -> tuple[list[int], list[int]]:
        """Places of callbacks of the program's that may set the rate: all, and those before a hook among them."""
        callbacks = [*(self.training.call.get("callbacks") or ())]
        places = [place for place, one in enumerate(callbacks) if type(one) not in _SET_NO_RATE]
        hooks = [place for place in places if is_a(callbacks[place], BoostingHook)]
        setters = [place for place in places if place not in hooks]
        return setters, [place for place in setters if hooks and place < hooks[0]]

    def predict(self, model: xgboost.Booster, data: xgboost.DMatrix) -> npt.NDArray[Any]:
        """The result of ``Booster.predict``."""
        return np.asarray(model.predict(self._rows(data, model)))

    def labels(self, data: xgboost.DMatrix) -> npt.NDArray[Any]:
        """The labels of this data, float32."""
        return np.asarray(data.get_label())

    def scores(self, model: xgboost.Booster, kind: str) -> Mapping[str, float]:
        """Importance of the features that are in a tree."""
        return model.get_score(importance_type=kind)  # type: ignore[return-value]

    def trees(self, model: xgboost.Booster) -> Mapping[str, npt.NDArray[Any]]:
        """The columns of ``tree_columns``."""
        rounds = model.num_boosted_rounds()
        return tree_columns(model[rounds - 1 : rounds], number_of_trees(model))

    def feature_names(self, model: xgboost.Booster) -> list[str]:
        """The model's names of its features, ``f0``, ``f1``, ... if the data had none."""
        return [*(model.feature_names or (f"f{i}" for i in range(model.num_features())))]

    def contributions(self, model: xgboost.Booster, data: xgboost.DMatrix) -> npt.NDArray[np.float32]:
        """SHAP values, kept from round to round."""
        return self._contributions_of(model, data).of(model)

    def seconds_of_contributions(self, model: xgboost.Booster, data: xgboost.DMatrix) -> float:
        """The seconds of the rounds since the last ones that were explained."""
        return self._contributions_of(model, data).seconds(model)

    def seconds_of_trees(self, model: xgboost.Booster) -> float:
        """The seconds by the number of nodes in the round."""
        rounds = model.num_boosted_rounds()
        splits = sum(model[rounds - 1 : rounds].get_score(importance_type="weight").values())  # type: ignore[arg-type]
        return _SECONDS_OF_NODE * 2 * float(splits)

    def data_facts(self, model: Any, log: EvalsLog) -> Mapping[str, float]:
        """The numbers of ``data_facts_of``; of a cross-validation, by the model of its first fold."""
        if self.training.call.get("dtrain") is None:
            raise Unavailable("the arguments of the training are not known, which the agent sees and a hook does not")
        return data_facts_of(self.training.call, self._first_model(model), log)

    def require_trees(self, model: xgboost.Booster) -> None:
        """Nothing, if the booster is one of trees."""
        name = _gradient_booster(model)["name"]
        if name not in TREE_BOOSTERS:
            raise Unavailable(f"the booster {name} has no trees, allowed are {' and '.join(TREE_BOOSTERS)}")

    def quiet(self) -> AbstractContextManager[Any]:
        """XGBoost prints nothing inside."""
        context: AbstractContextManager[Any] = xgboost.config_context(verbosity=0)
        return context

    def reason(self, failure: Exception) -> str:
        """The sentence alone; XGBoost puts time and source file before it and a stack trace behind it."""
        text = super().reason(failure)
        start, mark, sentence = text.partition("] ")
        return sentence.split(": ", 1)[-1] if mark and start.startswith("[") else text

    def _contributions_of(self, model: xgboost.Booster, data: xgboost.DMatrix) -> Contributions:
        if self._contributions is None:
            self._contributions = Contributions(self._rows(data, model))
        return self._contributions

    def _first_model(self, model: Any) -> xgboost.Booster:
        return plain(model.cvfolds[0].bst) if self.training.folds else model  # type: ignore[no-any-return]

    def _rows(self, data: xgboost.DMatrix, model: xgboost.Booster) -> xgboost.DMatrix:
        """The data, if the model can safely predict from it."""
        if data.num_col() > model.num_features():
            # XGBoost does not look, and writes beyond its buffers.
            raise Unavailable(f"the data has {data.num_col()} features and the model {model.num_features()}")
        # Older releases have no such thing.
        split = getattr(data, "data_split_mode", None)
        if split is not None and split().name == "COL" and rank_and_size()[1] > 1:
            # Such a prediction needs all workers at once, of which perhaps only one saves.
            raise Unavailable("the columns of the data are split over several workers")
        return data


def _plain(training: Training[xgboost.DMatrix]) -> Training[xgboost.DMatrix]:
    call = dict(training.call)
    if call:
        call["dtrain"] = plain(call.get("dtrain"))
        call["evals"] = [(plain(data), name) for data, name in call.get("evals") or ()]
    data, rows = plain(training.train_data), plain(training.validation_data)
    return replace(training, train_data=data, validation_data=rows, call=call)


def number_of_trees(model: xgboost.Booster) -> int:
    """Number of trees of a tree booster."""
    booster = _gradient_booster(model)
    booster = booster.get("gbtree", booster)
    return int(booster["gbtree_model_param"]["num_trees"])


def _gradient_booster(model: xgboost.Booster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(model.save_config())["learner"]["gradient_booster"]
    return found
