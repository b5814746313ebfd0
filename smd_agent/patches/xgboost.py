"""The functions of XGBoost that train; estimators, Dask and Spark workers call the same two."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from smd_agent.framework.boosting.products import Training
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches import boosting
from smd_agent.patches.supported import SUPPORTED


@whole_or_off("xgboost")
def apply(xgboost: ModuleType) -> None:
    """Have the trainings of the program saved."""
    boosting.capture(xgboost, TARGETS, oldest=SUPPORTED["xgboost"].oldest, needs="collective")


def _train(given: Mapping[str, Any]) -> Training[Any]:
    evals = given.get("evals")
    if not isinstance(evals, (list, tuple)):
        # Whatever else XGBoost may take could perhaps be walked only once.
        evals = None
    return Training(
        hyperparameters=_hyperparameters(given),
        train_data=given.get("dtrain"),
        # XGBoost's early stopping looks at the last one too.
        validation_data=evals[-1][0] if evals else None,
        call={**_kept(given), "evals": evals or ()},
    )


def _cross_validation(given: Mapping[str, Any]) -> Training[Any]:
    return Training(hyperparameters=_hyperparameters(given), folds=True, call=_kept(given))


def _kept(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given.get(name) for name in ("dtrain", "obj", "early_stopping_rounds", "maximize", "callbacks")}


def _hyperparameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**dict(given.get("params") or {}), "num_boost_round": given.get("num_boost_round", 10)}


TARGETS = {"xgboost.training.train": _train, "xgboost.training.cv": _cross_validation}
