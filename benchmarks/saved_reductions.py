"""What a saved step costs that keeps six reductions of 150 weights and 150 gradients, 2 x 11 million floats.

And of one that keeps those of 150 small layer outputs, where the cost is in their number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.family import Family, Sample, Worker, middle, smdebug_python
from benchmarks.table import Row, milliseconds

PERIOD = 2
OPTIONS = {
    "interval": PERIOD,
    "collections": ["weights", "gradients"],
    "reductions": "min,max,mean,std,l1_norm,l2_norm",
}
OUTPUTS = {**OPTIONS, "collections": [], "include_regex": "_output_0$"}
ROUNDS = 25
ROUNDS_OLD = 6


def rows() -> Iterator[Row]:
    """Yield the saved step's extra time against two passes of torch.sum, and against saving the same unreduced."""
    python = smdebug_python()
    with (
        tempfile.TemporaryDirectory() as folder,
        Family("layers_150", ["plain", "ours", "ours_raw"], Path(folder), options=OPTIONS) as new,
    ):
        plain, reduced, raw = measure(new, ROUNDS)
        old = None
        if python is not None:
            with Family("layers_150", ["plain", "old"], Path(folder), python, OPTIONS) as workers:
                old_plain, old_reduced = measure(workers, ROUNDS_OLD)
            old = extra(old_reduced, old_plain, "wall") / middle(old_plain, "sums")
    floor = middle(plain, "sums")
    words = f"two torch.sum passes, {milliseconds(floor)}"
    mine = extra(reduced, plain, "wall")
    yield Row("saved step, 6 reductions: extra time in training", words, milliseconds(mine), mine / floor, 4.5, old)
    whole, whole_raw = extra(reduced, plain, "process"), extra(raw, plain, "process")
    words = f"the same saved raw, {milliseconds(whole_raw)}"
    yield Row("– whole CPU time until on disk", words, milliseconds(whole), whole / whole_raw, 1.0)
    yield Row(
        "– bytes",
        f"raw, {middle(raw, 'bytes') / 1e6:.0f} MB",
        f"{middle(reduced, 'bytes') / 1e6:.2f} MB",
        middle(reduced, "bytes") / middle(raw, "bytes"),
    )

    yield outputs_row(python)


def outputs_row(python: str | None) -> Row:
    """Return what a saved step costs more that reduces the outputs of 150 layers, 8 by 272 each, one by one."""
    old = None
    with (
        tempfile.TemporaryDirectory() as folder,
        Family("layers_150", ["plain", "ours"], Path(folder), options=OUTPUTS) as new,
    ):
        plain, ours = measure(new, ROUNDS)
        if python is not None:
            with Family("layers_150", ["plain", "old"], Path(folder), python, OUTPUTS) as workers:
                old_plain, old_reduced = measure(workers, ROUNDS_OLD)
            old = extra(old_reduced, old_plain, "wall") / middle(old_plain, "wall") * PERIOD
    floor = middle(plain, "wall") / PERIOD
    mine = extra(ours, plain, "wall")
    words = f"plain step, {milliseconds(floor)}"
    return Row(
        "saved step, 6 reductions of 150 layer outputs: extra time", words, milliseconds(mine), mine / floor, None, old
    )


def measure(workers: list[Worker], rounds: int) -> list[list[Sample]]:
    """Run periods of all workers alternately, each round preceded by the floor in the first worker."""
    samples: list[list[Sample]] = [[] for _ in workers]
    for number in range(rounds):
        floor = workers[0].run("sums")["wall"]
        for offset in range(len(workers)):
            place = (number + offset) % len(workers)
            samples[place].append({**workers[place].run("saved_steps", PERIOD), "sums": floor})
    return samples


def extra(saved: list[Sample], plain: list[Sample], key: str) -> float:
    """Return how much longer a period takes with one saved step in it."""
    return middle(saved, key) - middle(plain, key)
