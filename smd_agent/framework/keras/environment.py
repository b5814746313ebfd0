"""Facts that Keras knows of where it runs: its version, what it computes with, and the seed that it was given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from smd_agent.framework.environment import SEEDS, SETTINGS, VERSIONS, Fact, library_version


def facts() -> Iterator[Fact]:
    """Yield them, of the Keras that the program has imported."""
    yield VERSIONS, "Keras", library_version("keras")
    yield VERSIONS, "tf_keras", library_version("tf_keras")
    config: Any = sys.modules.get("keras.src.backend.config")
    if config is not None and hasattr(config, "backend"):
        yield SETTINGS, "backend of Keras", config.backend()
    seeds: Any = sys.modules.get("keras.src.utils.rng_utils")
    if seeds is not None and hasattr(seeds, "get_random_seed"):
        yield SEEDS, "Keras", seeds.get_random_seed()
