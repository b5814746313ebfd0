"""CRC-32C, by the agent's own library of that name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.own_libraries import own_library

if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = own_library("crc32c").crc32c

__all__ = ["crc32c"]
