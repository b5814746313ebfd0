"""What it costs that a running training can be asked for something, as long as nobody asks."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import switched
from benchmarks.table import Row

PART = switched.Part("idle tap", "ours_deaf", "ours")
# Windows of some seconds, so that there are looks among them.
CASES = (
    switched.Case("three_layers", "MLP of 3 layers", steps=10, windows=600),
    switched.Case("cnn", "CNN of 13 modules", steps=3, windows=600),
)


def rows() -> Iterator[Row]:
    """Yield the rows of each model."""
    yield from switched.rows(PART, CASES)
