"""The worker of a distributed training that this process is."""

from __future__ import annotations

from xgboost import collective

from smd_agent.config import job_files


def rank_and_size() -> tuple[int, int]:
    """Rank and number of workers as XGBoost's communicator knows them; 0 and 1 outside distributed training."""
    return collective.get_rank(), collective.get_world_size()


def place() -> tuple[int, int]:
    """The same; outside distributed training, the place of this host in a SageMaker job, and how many hosts it has.

    The variables of launchers do not count: what they have started trains together only by XGBoost's communicator.
    """
    found = rank_and_size()
    return found if found[1] > 1 else job_files.rank_and_size_of_host() or found
