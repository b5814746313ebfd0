"""Facts that XGBoost knows of where it runs: its version. Its seed is among the hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator

from smd_agent.framework.environment import VERSIONS, Fact, library_version


def facts() -> Iterator[Fact]:
    """Yield it."""
    yield VERSIONS, "XGBoost", library_version("xgboost")
