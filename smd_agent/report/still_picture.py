"""The page's charts as one still picture, for places that run no JavaScript: mail, lists of artifacts, old browsers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.report.heatmaps import Grid, encoded
from smd_agent.report.line_charts import Line

_WIDTH, _LINE_HEIGHT, _GAP = 640, 120, 10
_MOST_ROWS, _LEAST_HEIGHT = 150, 40
_LEVELS = 250
_BACKGROUND, _ZERO, _INF, _NAN, _INK = 0, 1, 252, 253, 254
_LOW, _HIGH = (222, 235, 247), (8, 48, 107)


def picture(lines: Sequence[Line], grids: Sequence[Grid]) -> tuple[bytes, int, int]:
    """Return a PNG file with its width and height: a strip for the losses, one for each grid, all with the same steps.

    Args:
        lines: of losses, all in one strip.
        grids: strips of a row or less for each tensor.
    """
    steps = [step for line in lines for step in line.steps]
    steps += [step for grid in grids for step in (*grid.columns.steps[:1], *grid.columns.steps[-1:])]
    first, last = (min(steps), max(steps)) if steps else (0, 1)
    strips: list[npt.NDArray[np.uint8]] = []
    if lines:
        strips.append(_line_strip(lines, first, last))
    strips += [_grid_strip(grid, first, last) for grid in grids]
    pixels = np.vstack([*_with_gaps(strips)] or [np.zeros((_GAP, _WIDTH), np.uint8)])
    return png(pixels, [*_palette()]), pixels.shape[1], pixels.shape[0]


def _with_gaps(strips: Sequence[npt.NDArray[np.uint8]]) -> Iterator[npt.NDArray[np.uint8]]:
    for strip in strips:
        yield strip
        yield np.zeros((_GAP, _WIDTH), np.uint8)


def _places(steps: Sequence[int], first: int, last: int) -> npt.NDArray[np.intp]:
    share = (np.array(steps, np.float64) - first) / max(last - first, 1)
    return np.rint(share * (_WIDTH - 1)).astype(np.intp)


def _line_strip(lines: Sequence[Line], first: int, last: int) -> npt.NDArray[np.uint8]:
    strip = np.full((_LINE_HEIGHT, _WIDTH), _ZERO + 1, np.uint8)
    values = np.concatenate([np.array(line.values) for line in lines])
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    for line in lines:
        own = np.array(line.values)
        with np.errstate(invalid="ignore", over="ignore"):
            heights = (_LINE_HEIGHT - 4) * (1 - (own - low) / max(high - low, 1e-300)) + 1
        before: tuple[int, int] | None = None
        for place, value, height in zip(_places(line.steps, first, last).tolist(), own, heights, strict=True):
            if not np.isfinite(value):
                strip[:, place : place + 2] = _NAN if np.isnan(value) else _INF
                before = None
                continue
            here = (place, int(height))
            _draw(strip, before or here, here)
            before = here
    return strip


def _draw(strip: npt.NDArray[np.uint8], start: tuple[int, int], end: tuple[int, int]) -> None:
    count = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    columns = np.rint(np.linspace(start[0], end[0], count + 1)).astype(int)
    rows = np.rint(np.linspace(start[1], end[1], count + 1)).astype(int)
    strip[rows, columns] = strip[rows + 1, columns] = _INK


def _grid_strip(grid: Grid, first: int, last: int) -> npt.NDArray[np.uint8]:
    values = grid.values
    size = -(-len(values) // _MOST_ROWS)
    values = np.array([values[start : start + size].max(0) for start in range(0, len(values), size)])
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 1.0)
    codes: npt.NDArray[Any] = encoded(values, low, high, grid.kind.is_share, 8).astype(np.int64)
    colors = np.where(codes >= 254, codes - 254 + _INF, np.minimum(codes, _LEVELS))
    edges = [*_places(grid.columns.steps, first, last).tolist(), _WIDTH]
    owner = np.full(_WIDTH, -1)
    for number, (start, end) in enumerate(pairwise(edges)):
        owner[start : max(end, start + 1)] = number
    strip = np.where(owner >= 0, colors[:, np.maximum(owner, 0)], _BACKGROUND).astype(np.uint8)
    return np.repeat(strip, max(-(-_LEAST_HEIGHT // len(strip)), 1), axis=0)


def _palette() -> Iterator[tuple[int, int, int]]:
    """Background, exactly zero, 250 levels, Inf, NaN, ink."""
    yield (245, 245, 245)
    yield (170, 170, 170)
    for level in range(_LEVELS):
        share = level / (_LEVELS - 1)
        red, green, blue = (round(a + (b - a) * share) for a, b in zip(_LOW, _HIGH, strict=True))
        yield red, green, blue
    yield (245, 130, 0)
    yield (225, 20, 40)
    yield (30, 30, 30)


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
