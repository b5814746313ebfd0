"""Replicas of a distribution strategy, as far as one process runs several."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from smd_agent import guard


def is_other_replica() -> bool:
    """Whether this code runs for a replica other than the first of a strategy.

    Several replicas of one process compute the same things on parts of the batch; the first one's are saved.
    """
    context: Any = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return False
    number = context.replica_id_in_sync_group
    if tf.is_tensor(number):
        number = tf.get_static_value(number)
    guard.say_once(
        "replicas",
        f"of {context.num_replicas_in_sync} replicas the first one's loss and gradients are saved,"
        " as they are before the replicas' are added up",
    )
    return bool(number)
