"""The worker of a distributed run that this process is."""

from __future__ import annotations

from smd_agent.framework import launcher_rank


def rank_and_size() -> tuple[int, int]:
    """Rank and number of ranks of this process's job; 0 and 1 when it is alone. See ``framework.launcher_rank``."""
    return launcher_rank.rank_and_size("mxnet")
