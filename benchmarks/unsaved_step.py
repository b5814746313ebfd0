"""What a step costs that is not saved, where nothing of the agent is to see every step: series and requests are off."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.family import Family, Sample, interleave, middle, pairwise, smdebug_python
from benchmarks.table import Row, milliseconds

NEVER = 10**9
OPTIONS = {"interval": NEVER, "collections": ["weights", "biases", "gradients", "losses"], "pin": True}
CASES = (
    # workload, words, target, steps a window
    ("three_layers", "MLP of 3 layers", 1.005, 10),
    ("modules_81", "MLP of 81 modules", 1.005, 3),
    ("cnn", "CNN of 13 modules", 1.005, 3),
    ("transformer", "transformer of 12 layers, 125 modules", 1.005, 1),
)
VARIANTS = ("plain", "ours_off", "plain", "plain_alone")
GENERATIONS = 6
WINDOWS = 300


def rows() -> Iterator[Row]:
    """Yield, for each model, the unsaved step's ratio; then that of two plain runs, which is the noise of the first."""
    for workload, words, target, steps in CASES:
        taken = [generation(workload, steps) for _ in range(GENERATIONS)]
        one = {name: median(ratios[name] for ratios in taken) for name in taken[0]}
        plain = one["plain"] / steps
        floor = f"plain step, {milliseconds(plain)}"
        yield row(f"unsaved step, {words}", floor, plain, one["ours"], target, one["old"] or None)
        yield row(f"– noise: plain against plain; {spread(taken)}", floor, plain, one["again"])
        yield row("– against a process without a second thread", floor, plain, one["ours"] / one["alone"])


def spread(taken: list[dict[str, float]]) -> str:
    """Return from where to where the ratios of generations go, in words."""
    words = {"again": "plain", "ours": "with the agent"}
    found = {name: [ratios[name] for ratios in taken] for name in words}
    return ", ".join(f"{words[name]} {min(them):.4f} to {max(them):.4f}" for name, them in found.items())


def row(
    what: str, floor: str, plain: float, ratio: float, target: float | None = None, old: float | None = None
) -> Row:
    """Return a row whose time follows from its ratio."""
    return Row(what, floor, milliseconds(plain * ratio), ratio, target, old)


def generation(workload: str, steps: int) -> dict[str, float]:
    """Measure all variants once in new processes.

    Returns:
        `plain`, the CPU time of a plain window in seconds, and the ratios to it of `ours`, `again` (a second plain
        one), `alone` (one without torch's thread) and `old` (to its own plain one; 0 if there is none).
    """
    python = smdebug_python()
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(workload, VARIANTS, Path(folder), options=OPTIONS) as new,
    ):
        if python is None:
            return {**to_plain(interleave(new, WINDOWS, "steps", steps)), "old": 0.0}
        with Family(workload, ("plain", "old"), Path(folder), python, OPTIONS) as old:
            samples = interleave([*new, *old], WINDOWS, "steps", steps)
            old_ratio = pairwise(samples[5], samples[4], "cpu")
            return {**to_plain(samples[:4]), "old": old_ratio}


def to_plain(samples: list[list[Sample]]) -> dict[str, float]:
    """Return the times of the variants as ratios to the first."""
    plain, *others = samples
    named = zip(("ours", "again", "alone"), others, strict=True)
    return {"plain": middle(plain, "cpu"), **{name: pairwise(taken, plain, "cpu") for name, taken in named}}
