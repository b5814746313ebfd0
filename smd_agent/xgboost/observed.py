"""XGBoost's training for the observer of `verify`, which loads this file; it imports nothing of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xgboost import Booster

if TYPE_CHECKING:
    from smd_agent.framework.observer import Observer, Weights


def watch(module: Any, observer: Observer) -> None:
    """Have boosters noted after each round, and what their evaluations say."""
    inside: list[Any] = []

    def before_round(booster: Any, *args: Any, **kwargs: Any) -> None:
        inside.append(booster)

    def after_round(result: object, booster: Any, *args: Any, **kwargs: Any) -> None:
        inside.pop()
        # An update by an objective of the program's boosts.
        if not inside:
            observer.updated(booster, _model)

    def after_evaluation(result: Any, *args: Any, **kwargs: Any) -> None:
        observer.loss("evaluation", observer.text(str(result)))

    for name in ("update", "boost"):
        observer.around(Booster, name, before_round, after_round)
    observer.around(Booster, "eval_set", after=after_evaluation)


def _model(booster: Any) -> Weights:
    yield "booster", ("model", (), bytes(booster.save_raw("ubj")))
