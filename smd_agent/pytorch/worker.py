"""Which worker of a distributed run this process is."""

from __future__ import annotations

import torch.distributed as dist


def rank_and_size() -> tuple[int, int]:
    """Rank and world size of the process group, 0 and 1 when there is none."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1
