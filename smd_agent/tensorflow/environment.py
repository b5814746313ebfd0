"""Facts that TensorFlow knows of where it runs: its version, GPUs, and the seed that it was given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from smd_agent.framework.environment import MACHINE, SEEDS, SETTINGS, VERSIONS, Fact, library_version
from smd_agent.framework.keras.plain_access import attribute


def facts() -> Iterator[Fact]:
    """Yield them."""
    yield VERSIONS, "TensorFlow", library_version("tensorflow")
    context: Any = sys.modules.get("tensorflow.python.eager.context")
    if context is not None:
        # None where no seed was set.
        yield SEEDS, "TensorFlow", context.global_seed()
    yield SETTINGS, "deterministic operations", "on" if _is_deterministic() else "off"
    devices = tf.config.list_logical_devices("GPU") if context is not None and _is_initialized(context) else []
    if devices:
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        yield MACHINE, "GPU", details.get("device_name")
        yield MACHINE, "GPUs", len(devices)


def _is_deterministic() -> bool:
    config: Any = sys.modules.get("tensorflow.python.framework.config")
    return config is not None and bool(config.is_op_determinism_enabled())


def _is_initialized(context: Any) -> bool:
    # Else asking for devices would take them.
    return bool(attribute(context.context(), "_initialized", False))
