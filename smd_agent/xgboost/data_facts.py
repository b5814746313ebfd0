"""Numbers of an XGBoost training's labels and evaluation sets, from which rules tell mistakes that raise no error."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import xgboost
from xgboost.callback import EarlyStopping, LearningRateScheduler

from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.xgboost.directions import watched
from smd_agent.xgboost.margins import facts_of_margins
from smd_agent.xgboost.own_objectives import facts_of_objective
from smd_agent.xgboost.plain_access import is_same
from smd_agent.xgboost.unread_parameters import unread

# Objectives of two classes that weigh the labels of 1 by ``scale_pos_weight``.
_WEIGHED = ("binary:logistic", "binary:logitraw", "reg:logistic")
# Times may be censored, and bounded by other numbers than labels.
_OF_TIMES = "survival:"
# Places at which labels change, of which so many are not the same of other rows by chance.
_CHANGES = 50
_MOST_SETS = 16


def data_facts_of(
    call: Mapping[str, Any], model: xgboost.Booster, log: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> dict[str, float]:
    """The facts of a training's call and its model. The data is not changed, and nothing is predicted.

    Args:
        call: arguments of ``xgboost.train`` or ``xgboost.cv``: ``dtrain``, and if they were given ``obj``, ``evals``,
            ``early_stopping_rounds``, ``callbacks``, ``num_boost_round``, ``xgb_model``, ``params``, ``told_rounds``.
        model: after its first round.
        log: by evaluation set and metric, what was evaluated.

    Returns:
        Numbers by name; none of what the training has not.
        Of the training data ``labels/train/rows`` and ``features``, how many there are; ``label_min`` and
        ``label_max``, where an objective of XGBoost goes by labels alone; and where there are two classes
        ``negatives`` and ``positives``, how many labels there are of each; ``sample_weight``, the mean weight of a
        positive row as part of that of a negative one; ``scale_pos_weight``, as the model has it.
        Of each of the first 16 evaluation sets ``evaluation/<set>/training_rows``, 1 if it has the rows of the training
        data, else 0; of those that early stopping goes by ``stopping_rounds``, its patience, and ``other_sets``, how
        many sets have other rows.
        Of trees that nothing was trained before ``rounds/train/learning_rate``, the same in all rounds, and ``asked``,
        how many rounds there are to be.
        Of each metric that early stopping goes by ``monitor/<metric>/largest_wins``, how many callbacks take its
        largest value for the best one, and ``smallest_wins``, how many the smallest one.
        Of margins that rows begin with, under an objective of counts or amounts ``margins/train/over_logarithm`` and
        ``over_power``, see ``facts_of_margins``.
        Of an objective of the program's own that is a function, where rows have weights,
        ``objective/train/ignores_weights``, 1 if nothing that it can reach reads them, else 0.
        Of each parameter that XGBoost does not read ``unread/<name>/<meant>/default_holds``, 1, if it is
        known which one was meant.
    """
    data = call["dtrain"]
    facts: dict[str, float] = {"rows": data.num_row(), "features": data.num_col()}
    config = json.loads(model.save_config())
    learner = config["learner"]
    if call.get("obj") is None:
        objective = learner["objective"]
        labels = np.asarray(data.get_label())
        facts |= {**_of_labels(data, labels, objective), **_of_classes(data, labels, objective)}
        margins = facts_of_margins(data, labels, objective["name"])
    else:
        margins = {}
    found = {f"labels/train/{name}": number for name, number in facts.items()}
    found |= {f"margins/train/{name}": number for name, number in margins.items()}
    found |= {f"objective/train/{name}": number for name, number in facts_of_objective(call.get("obj"), data).items()}
    found |= {f"rounds/train/{name}": number for name, number in _of_rounds(learner, call).items()}
    found |= {f"unread/{name}/{meant}/default_holds": 1 for name, meant in unread(call, config)}
    return {**found, **_of_evaluation(data, call), **_of_monitors(call, log)}


def _of_monitors(call: Mapping[str, Any], log: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    ways = Counter(watched(call, log))
    metrics = {metric for metric, _ in ways}
    sides = {"largest_wins": True, "smallest_wins": False}
    return {f"monitor/{one}/{name}": ways[one, way] for one in metrics for name, way in sides.items()}


def _of_rounds(learner: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, float]:
    rate = _rate_of(learner["gradient_booster"])
    is_scheduled = any(is_a(callback, LearningRateScheduler) for callback in call.get("callbacks") or ())
    if rate is None or is_scheduled or call.get("xgb_model") is not None or not call.get("num_boost_round"):
        return {}
    return {"learning_rate": rate, "asked": int(call["num_boost_round"])}


def _rate_of(booster: Mapping[str, Any]) -> float | None:
    """The learning rate of trees; None of what is another booster than ``gbtree``."""
    updaters = booster.get("updater")
    # XGBoost 1 has the parameters of each updater by itself.
    each = [one.get("train_param", {}) for one in updaters.values()] if is_a(updaters, dict) else []
    found = [params["learning_rate"] for params in (booster.get("tree_train_param", {}), *each) if params]
    # It is written as a number of 32 bits is.
    return float(f"{float(found[0]):.6g}") if found and booster["name"] == "gbtree" else None


def _of_labels(data: xgboost.DMatrix, labels: Any, objective: Any) -> dict[str, float]:
    # Rows with margins of their own differ where labels do not.
    if not labels.size or objective["name"].startswith(_OF_TIMES) or np.asarray(data.get_base_margin()).size:
        return {}
    return {"label_min": float(labels.min()), "label_max": float(labels.max())}


def _of_classes(data: xgboost.DMatrix, labels: Any, objective: Any) -> dict[str, float]:
    if objective["name"] not in _WEIGHED:
        return {}
    is_one, is_zero = labels == 1, labels == 0
    positives, negatives = int(np.count_nonzero(is_one)), int(np.count_nonzero(is_zero))
    if labels.ndim != 1 or positives + negatives != labels.size or not positives or not negatives:
        return {}
    return {
        "negatives": negatives,
        "positives": positives,
        "sample_weight": _relative_weight(np.asarray(data.get_weight()), is_one, is_zero),
        "scale_pos_weight": float(objective["reg_loss_param"]["scale_pos_weight"]),
    }


def _relative_weight(weights: Any, is_one: Any, is_zero: Any) -> float:
    if weights.shape != is_one.shape:
        return 1.0
    negative = float(weights[is_zero].mean(dtype=np.float64))
    return float(weights[is_one].mean(dtype=np.float64)) / negative if negative else float("inf")


def _of_evaluation(data: xgboost.DMatrix, call: Mapping[str, Any]) -> dict[str, float]:
    sets = {name: rows for rows, name in itertools.islice(call.get("evals") or (), _MOST_SETS)}
    is_own = {name: _has_rows_of(rows, data) for name, rows in sets.items()}
    found: dict[str, float] = {f"evaluation/{name}/training_rows": int(own) for name, own in is_own.items()}
    for name, rounds in _watched(call, [*sets]):
        if name in is_own:
            found[f"evaluation/{name}/stopping_rounds"] = rounds
            found[f"evaluation/{name}/other_sets"] = [*is_own.values()].count(False)
    return found


def _watched(call: Mapping[str, Any], sets: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The sets that early stopping goes by, each with its patience."""
    last = sets[-1] if sets else ""
    if call.get("early_stopping_rounds"):
        yield last, int(call["early_stopping_rounds"])
    for callback in call.get("callbacks") or ():
        if is_a(callback, EarlyStopping):
            yield attribute(callback, "data") or last, attribute(callback, "rounds")


def _has_rows_of(data: xgboost.DMatrix, other: xgboost.DMatrix) -> bool:
    """True if both are the same data, as far as that can be told from labels and sizes."""
    if is_same(data, other):
        return True
    sizes = [(one.num_row(), one.num_col(), one.num_nonmissing()) for one in (data, other)]
    if sizes[0] != sizes[1]:
        return False
    labels = np.asarray(data.get_label())
    # Sorted labels of two classes may be those of any rows.
    has_enough = labels.ndim == 1 and np.count_nonzero(labels[1:] != labels[:-1]) >= _CHANGES
    return bool(has_enough and np.array_equal(labels, other.get_label()))
