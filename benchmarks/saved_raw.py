"""What saving 100 MB of weights unreduced costs, against one ndarray.tofile of the same bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.family import Family, Sample, Worker, middle, smdebug_python
from benchmarks.table import Row, milliseconds

PERIOD = 2
OPTIONS = {"interval": PERIOD, "collections": ["weights"]}
ROUNDS = 15
ROUNDS_OLD = 5


def rows() -> Iterator[Row]:
    """Yield what training waits for, and the time until the step is on disk; a step computes next to nothing here."""
    python = smdebug_python()
    with (
        tempfile.TemporaryDirectory() as folder,
        Family("raw_100_mb", ["plain", "ours"], Path(folder), options=OPTIONS) as new,
    ):
        plain, ours = measure(new, ROUNDS)
        old: dict[str, float | None] = {"wall": None, "disk": None}
        if python is not None:
            with Family("raw_100_mb", ["plain", "old"], Path(folder), python, OPTIONS) as workers:
                old_plain, old_saved = measure(workers, ROUNDS_OLD)
            old = {key: extra(old_saved, old_plain, key) / middle(old_plain, "floor") for key in old}
    floor = middle(plain, "floor")
    words = f"ndarray.tofile, {middle(ours, 'bytes') / 1e6:.0f} MB, {milliseconds(floor)}"
    for what, key, target in (("what training waits for", "wall", 0.6), ("until it is on disk", "disk", 1.2)):
        mine = extra(ours, plain, key)
        yield Row(f"100 MB saved raw: {what}", words, milliseconds(mine), mine / floor, target, old[key])


def measure(workers: list[Worker], rounds: int) -> list[list[Sample]]:
    """Run periods of all workers alternately, each round preceded by the floor in the first worker."""
    samples: list[list[Sample]] = [[] for _ in workers]
    for _ in range(rounds):
        floor = workers[0].run("tofile")["wall"]
        for place, worker in enumerate(workers):
            samples[place].append({**worker.run("saved_steps", PERIOD), "floor": floor})
    return samples


def extra(saved: list[Sample], plain: list[Sample], key: str) -> float:
    """Return how much longer a period takes with one saved step in it."""
    return middle(saved, key) - middle(plain, key)
