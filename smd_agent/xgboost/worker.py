"""Which worker of a distributed training this process is."""

from __future__ import annotations

from xgboost import collective


def rank_and_size() -> tuple[int, int]:
    """Rank and number of workers as XGBoost's communicator knows them; 0 and 1 outside distributed training."""
    return collective.get_rank(), collective.get_world_size()
