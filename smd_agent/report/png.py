"""PNG images of few colours, made with the standard library."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _BY_PALETTE = 8, 3


def png(pixels: npt.NDArray[np.uint8], palette: Sequence[tuple[int, int, int]]) -> bytes:
    """Return the bytes of a PNG file.

    Args:
        pixels: shape (height, width); each is the number of a colour.
        palette: at most 256 colours as red, green, blue from 0 to 255.
    """
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, _EIGHT_BITS, _BY_PALETTE, 0, 0, 0)
    # Each line begins with the number of its filter; 0 is none.
    lines = np.zeros((height, width + 1), np.uint8)
    lines[:, 1:] = pixels
    parts = ((b"IHDR", header), (b"PLTE", bytes(sum(palette, ()))), (b"IDAT", zlib.compress(lines.tobytes(), 9)))
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in (*parts, (b"IEND", b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
