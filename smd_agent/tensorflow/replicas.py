"""Replicas of a distribution strategy, as far as one process runs several."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from smd_agent import guard
from smd_agent.framework import launcher_rank
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.tensorflow.types import Strategy

# Looked up once: TensorFlow's public modules load their parts when they are asked for, and take their time each time.
_replica_context = tf.distribute.get_replica_context

_TAPES = "of {} replicas the first one's loss and gradients are saved, as they are before the replicas' are added up"


def is_other_replica(line: str = _TAPES) -> bool:
    """True if this code runs for a replica other than the first of a strategy.

    Several replicas of one process compute the same things on parts of the batch; the first one's are saved, and
    ``line``, with their number in it, says so once.
    """
    context: Any = _replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return False
    number = context.replica_id_in_sync_group
    if tf.is_tensor(number):
        number = tf.get_static_value(number)
    guard.say_once(("replicas", line), line.format(context.num_replicas_in_sync))
    return bool(number)


def rank_and_size(strategy: Strategy | None = None) -> tuple[int, int]:
    """Number of this process among the workers of a strategy, and how many they are; 0 and 1 when it is alone.

    Where the strategy has no workers, see ``framework.launcher_rank``.

    Args:
        strategy: the one in scope, if None.
    """
    if strategy is None:
        strategy = tf.distribute.get_strategy()
    resolver: Any = attribute(strategy, "cluster_resolver")
    if resolver is None or resolver.task_type is None:
        return launcher_rank.rank_and_size("tensorflow")
    if resolver.task_type not in ("chief", "worker"):
        return 0, 1
    jobs = resolver.cluster_spec().as_dict()
    chiefs = len(jobs.get("chief", ()))
    size = chiefs + len(jobs.get("worker", ()))
    rank = int(resolver.task_id or 0) + (chiefs if resolver.task_type == "worker" else 0)
    return rank, max(size, 1)
