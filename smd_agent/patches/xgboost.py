"""The functions of XGBoost that train; estimators, Dask and Spark workers call the same two."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from smd_agent.framework.boosting.library import Training
from smd_agent.framework.nested_tensors import pairs_in
from smd_agent.framework.plain_access import elements_of, text_of
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches import boosting
from smd_agent.patches.declared import DECLARED

# As many as XGBoost makes where it is not told.
_ROUNDS = 10


@whole_or_off("xgboost")
def apply(xgboost: ModuleType) -> None:
    """Have the trainings of the program saved."""
    boosting.capture(
        xgboost, TARGETS, hook="smd_agent.xgboost.hook", oldest=DECLARED["xgboost"].supported.oldest, needs="collective"
    )


def _train(given: Mapping[str, Any]) -> Training[Any]:
    # Whatever else than a list XGBoost may take could perhaps be walked only once.
    pairs = [tuple(elements_of(pair)) for pair in elements_of(given.get("evals"))]
    evals = [(pair[0], text_of(pair[1], place)) for place, pair in enumerate(pairs) if len(pair) == 2]
    return Training(
        hyperparameters=_hyperparameters(given),
        train_data=given.get("dtrain"),
        # XGBoost's early stopping looks at the last one too.
        validation_data=evals[-1][0] if evals else None,
        call={**_kept(given), "evals": evals},
    )


def _cross_validation(given: Mapping[str, Any]) -> Training[Any]:
    return Training(hyperparameters=_hyperparameters(given), folds=True, call=_kept(given))


def _kept(given: Mapping[str, Any]) -> dict[str, Any]:
    names = ("dtrain", "obj", "early_stopping_rounds", "maximize", "callbacks", "xgb_model")
    kept = {name: given.get(name) for name in names}
    rounds = {"num_boost_round": given.get("num_boost_round", _ROUNDS), "told_rounds": "num_boost_round" in given}
    return {**kept, **rounds, "params": _parameters(given)}


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    params = given.get("params")
    pairs = [tuple(elements_of(pair)) for pair in elements_of(params)] or [*pairs_in(params)]
    return {text_of(pair[0], place): pair[1] for place, pair in enumerate(pairs) if len(pair) == 2}


def _hyperparameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_parameters(given), "num_boost_round": given.get("num_boost_round", _ROUNDS)}


TARGETS = {"xgboost.training.train": _train, "xgboost.training.cv": _cross_validation}
