"""What it costs that a running training can be asked for something, as long as nobody asks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.family import Family, Sample, interleave, middle, pairwise
from benchmarks.table import Row, milliseconds
from benchmarks.unsaved_step import OPTIONS

CASES = (
    # workload, words, steps a window
    ("three_layers", "MLP of 3 layers", 10),
    ("cnn", "CNN of 13 modules", 3),
)
VARIANTS = ("ours_deaf", "ours", "ours_deaf")
GENERATIONS = 6
# Some seconds, so that there are looks among them.
WINDOWS = 600


def rows() -> Iterator[Row]:
    """Yield, for each model, the ratio of a step where requests are looked for, and of two without that: the noise."""
    for workload, words, steps in CASES:
        taken = [_generation(workload, steps) for _ in range(GENERATIONS)]
        floor = median(one["floor"] for one in taken) / steps
        against = f"step without looks, {milliseconds(floor)}"
        for key, kind in (("cpu", "CPU time"), ("wall", "the clock")):
            for name, what in (("ours", f"idle tap, {words}, {kind}"), ("again", "– noise: without looks, twice")):
                ratios = [one[f"{name} {key}"] for one in taken]
                spread = f"; {min(ratios):.4f} to {max(ratios):.4f}"
                yield Row(what + spread, against, milliseconds(floor * median(ratios)), median(ratios))


def _generation(workload: str, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Family(workload, VARIANTS, Path(folder), options=OPTIONS) as workers:
        without, ours, again = interleave(workers, WINDOWS, "steps", steps)
    return {"floor": middle(without, "cpu"), **_ratios("ours", ours, without), **_ratios("again", again, without)}


def _ratios(name: str, samples: list[Sample], floor: list[Sample]) -> dict[str, float]:
    return {f"{name} {key}": pairwise(samples, floor, key) for key in ("cpu", "wall")}
