"""Facts that MXNet knows of where it runs: its version. It keeps no seed that could be asked for."""

from __future__ import annotations

from collections.abc import Iterator

from smd_agent.framework.environment import VERSIONS, Fact, library_version


def facts() -> Iterator[Fact]:
    """Yield it."""
    yield VERSIONS, "MXNet", library_version("mxnet")
