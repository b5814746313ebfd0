"""Rank of a process where its framework knows of no other one: as Horovod, a launcher or SageMaker say."""

from __future__ import annotations

import sys

from smd_agent.config import env, job_files


def rank_and_size(framework: str) -> tuple[int, int]:
    """Rank of this process and number of ranks of its job; 0 and 1 when it is alone.

    Horovod knows best, if the program has imported and begun it. Then the variables of a launcher count: without them,
    all ranks would take themselves for the only one. In a SageMaker job of several hosts each has one process, unless
    one of those says more.

    Args:
        framework: as in the name of Horovod's module for it, such as ``torch``.
    """
    horovod = sys.modules.get(f"horovod.{framework}")
    if horovod is not None and horovod.is_initialized():
        return int(horovod.rank()), int(horovod.size())
    places = [place for place in (env.rank_and_size(), job_files.rank_and_size_of_host()) if place is not None]
    return next((place for place in places if place[1] > 1), (0, 1))
