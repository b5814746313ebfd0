"""The worker of a distributed run that this process is."""

from __future__ import annotations

import torch.distributed as dist
from torch.utils.data import get_worker_info

from smd_agent.framework import launcher_rank


def rank_and_size() -> tuple[int, int]:
    """Rank and number of ranks of this process's job; 0 and 1 when it is alone.

    The process group knows best; before it has begun, see ``framework.launcher_rank``.
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return launcher_rank.rank_and_size("torch")


def feeds_a_loader() -> bool:
    """True if this process is a worker of a ``DataLoader``: what it computes is the training's data."""
    return get_worker_info() is not None
