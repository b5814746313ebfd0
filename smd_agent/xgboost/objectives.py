"""The objective and the learning rate in an XGBoost model's configuration."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import xgboost

from smd_agent.formats.series import ABSENT

# The metrics that say how well an objective is met; they may have a parameter, as in ``tweedie-nloglik@1.5``. Those of
# ranks are none, since more of them is better.
_METRICS = {
    **dict.fromkeys(("reg:squarederror", "reg:linear", "reg:logistic"), ("rmse",)),
    **dict.fromkeys(("binary:logistic", "binary:logitraw"), ("logloss",)),
    **dict.fromkeys(("multi:softmax", "multi:softprob"), ("mlogloss",)),
    "reg:squaredlogerror": ("rmsle",),
    "reg:absoluteerror": ("mae",),
    "reg:pseudohubererror": ("mphe",),
    "reg:quantileerror": ("quantile",),
    "reg:expectileerror": ("expectile",),
    "reg:gamma": ("gamma-nloglik", "gamma-deviance"),
    "reg:tweedie": ("tweedie-nloglik",),
    "count:poisson": ("poisson-nloglik",),
    "survival:cox": ("cox-nloglik",),
    "survival:aft": ("aft-nloglik",),
}
_RATES = ("learning_rate", "eta")


def objective_metrics(model: xgboost.Booster, metrics: Collection[str]) -> list[str]:
    """Those of some metrics that say how well the objective of a model is met."""
    known = _METRICS.get(_learner(model)["objective"]["name"], ())
    return [metric for metric in metrics if metric.partition("@")[0] in known]


def learning_rate_of(model: xgboost.Booster) -> float:
    """The learning rate that a model has; ``ABSENT`` where its configuration has none, or several."""
    found = {*_rates_in(_learner(model)["gradient_booster"])}
    return float(found.pop()) if len(found) == 1 else ABSENT


def _learner(model: xgboost.Booster) -> Any:
    return json.loads(model.save_config())["learner"]


def _rates_in(part: dict[str, Any]) -> Iterator[str]:
    for name, value in part.items():
        if name in _RATES:
            yield value
        elif type(value) is dict:
            yield from _rates_in(value)
