"""Which worker of a distributed run this process is."""

from __future__ import annotations

import sys

import torch.distributed as dist
from torch.utils.data import get_worker_info

from smd_agent.config import env


def rank_and_size() -> tuple[int, int]:
    """Rank and number of ranks of this process's job; 0 and 1 when it is alone.

    The process group knows best, then Horovod if the program has imported it. Before either has begun, the launcher's
    ``RANK`` and ``WORLD_SIZE`` count: without them, all ranks would take themselves for the only one.
    """
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    horovod = sys.modules.get("horovod.torch")
    if horovod is not None and horovod.is_initialized():
        return int(horovod.rank()), int(horovod.size())
    return env.rank_and_size() or (0, 1)


def feeds_a_loader() -> bool:
    """Whether this process is a worker of a ``DataLoader``: what it computes is the training's data."""
    return get_worker_info() is not None
