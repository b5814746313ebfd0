"""Metrics that XGBoost wants small: those of its own, and what early stopping goes by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xgboost.callback import EarlyStopping

LESS_IS_BETTER = (
    *("rmse", "rmsle", "mae", "mape", "mphe", "logloss", "error", "mlogloss", "merror", "quantile", "expectile"),
    *("poisson-nloglik", "gamma-nloglik", "gamma-deviance", "tweedie-nloglik", "cox-nloglik", "aft-nloglik"),
)
"""Metrics of XGBoost of which that is so; they may have a parameter, as in ``error@0.7``."""

# Where nobody says which way is better, early stopping takes it that these beginnings of names want to be large.
_TAKEN_AS_LARGE = ("auc", "pre", "map", "ndcg")
_TAKEN_AS_SMALL = "mape"


def wanted_small(call: Mapping[str, Any], log: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the names of metrics that early stopping wants small, whosever metrics they are.

    Args:
        call: arguments of ``xgboost.train`` or ``xgboost.cv``.
        log: by evaluation set and metric, what was evaluated.
    """
    return {metric for metric, more in watched(call, log) if not more}


def watched(call: Mapping[str, Any], log: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield the metrics that early stopping goes by, each with whether more is better; arguments as above."""
    if not log:
        return
    if call.get("early_stopping_rounds"):
        yield from _direction(log, None, None, call.get("maximize"))
    for callback in call.get("callbacks") or ():
        if issubclass(type(callback), EarlyStopping):
            facts = object.__getattribute__(callback, "__dict__")
            yield from _direction(log, facts.get("data"), facts.get("metric_name"), facts.get("maximize"))


def _direction(log: Mapping[str, Any], data: Any, metric: Any, maximize: Any) -> Iterator[tuple[str, bool]]:
    of_data = log.get(data or [*log][-1], {})
    name = metric or next(reversed([*of_data]), None)
    if name is None:
        return
    if maximize is None:
        maximize = name != _TAKEN_AS_SMALL and name.startswith(_TAKEN_AS_LARGE)
    yield name, bool(maximize)
