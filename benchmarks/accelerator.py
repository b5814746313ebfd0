"""What a step on an accelerator of CUDA costs, unsaved and saved; no rows where there is none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.family import Family, Sample, Worker, interleave, middle, pairwise
from benchmarks.table import Row, milliseconds

NEVER = 10**9
PERIOD = 10
COLLECTIONS = ["weights", "biases", "gradients", "losses"]
UNSAVED = (
    # workload, words, steps a window
    ("three_layers", "MLP of 3 layers", 50),
    ("cnn", "CNN of 13 modules", 20),
    ("transformer", "transformer of 125 modules", 5),
    ("wide_transformer", "transformer of 85 million weights", 5),
)
SAVED = {
    "6 reductions of 85 million weights and gradients": {"reductions": "min,max,mean,std,l1_norm,l2_norm"},
    "statistics of them": {"reductions": "statistics"},
    "them raw": {},
}
FLOORS = {"sums": "two torch.sum passes", "copies": "a copy of them to the host"}
WINDOWS = 100
ROUNDS = 8
ROUNDS_RAW = 4


def rows() -> Iterator[Row]:
    """Yield the unsaved steps' ratios, then the extra time of saved ones, and the memory that they take."""
    if not torch.cuda.is_available():
        return
    for workload, words, steps in UNSAVED:
        with family(workload, ("plain", "ours", "plain"), {"interval": NEVER}) as workers:
            plain, ours, again = interleave(workers, WINDOWS, "steps", steps)
        one = middle(plain, "wall") / steps
        floor = f"plain step, {milliseconds(one)}"
        ratio = pairwise(ours, plain, "wall")
        yield Row(f"accelerator: unsaved step, {words}", floor, milliseconds(one * ratio), ratio, 1.01)
        noise = pairwise(again, plain, "wall")
        yield Row("– noise: plain against plain", floor, milliseconds(one * noise), noise)
    for words, options in SAVED.items():
        yield from saved_rows(words, options)


def saved_rows(words: str, options: dict[str, str]) -> Iterator[Row]:
    """Yield what one saved step adds to the training's time, and what it takes.

    Raises:
        RuntimeError: not every period has a saved step on disk.
    """
    with family("wide_transformer", ("plain", "ours"), {"interval": PERIOD, **options}) as workers:
        rounds = ROUNDS if options else ROUNDS_RAW
        plain, ours = measure(workers, rounds)
        floors = {name: middle([workers[0].run(name) for _ in range(ROUNDS)], "wall") for name in FLOORS}
        memory = [worker.run("memory", PERIOD)["bytes"] for worker in workers]
        written = workers[1].run("written", PERIOD)
    if written["steps"] < rounds:
        raise RuntimeError(f"{written['steps']:.0f} saved steps are on disk, of {rounds} at least")
    floor = floors["sums" if options else "copies"]
    mine = middle(ours, "wall") - middle(plain, "wall")
    against = f"{FLOORS['sums' if options else 'copies']}, {milliseconds(floor)}"
    yield Row(f"accelerator: saved step, {words}: extra time", against, milliseconds(mine), mine / floor)
    step = middle(plain, "wall") / PERIOD
    yield Row("– as a share of plain steps", f"plain step, {milliseconds(step)}", milliseconds(mine), mine / step)
    size = f"{written['bytes'] / written['steps'] / 1e6:.1f} MB a step on disk, {memory[0] / 1e6:.0f} MB plain"
    yield Row("– memory of the accelerator", size, f"{memory[1] / 1e6:.0f} MB", memory[1] / memory[0])


def family(workload: str, variants: tuple[str, ...], options: dict[str, object]) -> Family:
    """Return a family of this workload that saves weights, gradients and losses."""
    folder = Path(tempfile.mkdtemp())
    return Family(workload, variants, folder, options={"collections": COLLECTIONS, **options}, framework="accelerator")


def measure(workers: list[Worker], rounds: int) -> list[list[Sample]]:
    """Run periods of all workers alternately."""
    samples: list[list[Sample]] = [[] for _ in workers]
    for number in range(rounds):
        for offset in range(len(workers)):
            place = (number + offset) % len(workers)
            samples[place].append(workers[place].run("saved_steps", PERIOD))
    return samples
