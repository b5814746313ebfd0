"""The PNG that is made: a reader of its own finds the same pixels."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from smd_agent.report.heatmaps import KINDS, Grid
from smd_agent.report.line_charts import Line
from smd_agent.report.still_picture import picture, png

RED = (225, 20, 40)


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + content),)
        found[kind] = content
        at += 12 + length
    return found


def decoded(data):
    """Return the colours of a PNG by palette, shape (height, width, 3)."""
    found = chunks(data)
    width, height, bits, kind = struct.unpack(">IIBB", found[b"IHDR"][:10])
    assert (bits, kind) == (8, 3)
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 0).all()
    return np.frombuffer(found[b"PLTE"], np.uint8).reshape(-1, 3)[lines[:, 1:]]


def test_pixels_come_back():
    pixels = np.array([[0, 1, 2], [2, 1, 0]], np.uint8)
    colors = [(1, 2, 3), (40, 50, 60), (255, 0, 128)]
    assert (decoded(png(pixels, colors)) == np.array(colors)[pixels]).all()


def test_a_picture_shows_nan_in_red():
    line = Line()
    for step, value in enumerate([3.0, 2.0, np.nan, np.nan]):
        line.add(step, step, value)
    grid = Grid(KINDS[0], ["a", "b"], range(4))
    grid.values[:] = [[1, 2, np.nan, np.nan], [3, 4, 5, 6]]
    image, width, height = picture([line], [grid])
    colors = decoded(image)
    assert colors.shape[:2] == (height, width)
    red = (colors == RED).all(-1)
    of_losses, of_grid = red[:120], red[130:]
    assert of_losses.any()
    assert not of_losses[:, : width // 2].any()
    # The first tensor's row, its second half.
    assert of_grid[: len(of_grid) // 3, -width // 4 :].all()
    assert not of_grid[-len(of_grid) // 3 :].any()


def test_a_run_without_anything_has_a_picture():
    assert decoded(picture([], [])[0]).size
