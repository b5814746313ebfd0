"""What a Gluon step costs, saved and unsaved."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.family import (
    Family,
    Sample,
    Worker,
    counted,
    interleave,
    middle,
    mxnet_python,
    pairwise,
    smdebug_mxnet_python,
)
from benchmarks.table import Row, milliseconds
from benchmarks.unsaved_step import spread

NEVER = 10**9
UNSAVED = {"interval": NEVER, "collections": ["weights", "biases", "gradients", "losses"], "pin": True}
CASES = (
    # workload, words, steps a window
    ("three_layers", "Gluon MLP of 3 layers", 15),
    ("three_layers_hybridized", "Gluon MLP of 3 layers, hybridized", 15),
    ("layers_41", "Gluon MLP of 41 layers", 3),
)
GENERATIONS = 8
WINDOWS = 120

SERIES_CASES = (
    # workload, words, steps a window, most that it may cost
    ("milliseconds_1", "Gluon MLP of 3 layers", 30, 1.02),
    ("milliseconds_3", "Gluon step of 3 ms", 20, 1.02),
    ("milliseconds_20", "Gluon step of 20 ms", 5, 1.01),
)
SERIES_GENERATIONS = 4

PERIOD = 2
# Without std and variance, which the old library cannot make of MXNet's arrays.
SAVED = {"interval": PERIOD, "collections": ["weights", "gradients"], "reductions": "min,max,mean,l1_norm,l2_norm"}
ROUNDS = 20
ROUNDS_OLD = 6


def rows() -> Iterator[Row]:
    """Yield the rows of unsaved steps, then those of a step saved as reductions; none where there is no MXNet."""
    python = mxnet_python()
    if python is None:
        print("MXNET_PYTHON is not set: no rows with MXNet", file=sys.stderr)
        return
    old = smdebug_mxnet_python()
    for workload, words, steps in CASES:
        taken = [generation(workload, steps, python, old) for _ in range(GENERATIONS)]
        one = {name: median(ratios[name] for ratios in taken) for name in taken[0]}
        plain = one["plain"] / steps
        floor = f"plain step, {milliseconds(plain)}"
        yield Row(f"unsaved step, {words}", floor, milliseconds(plain * one["ours"]), one["ours"], 1.01, one.get("old"))
        noise = f"– noise: plain against plain; {spread(taken)}"
        yield Row(noise, floor, milliseconds(plain * one["again"]), one["again"])
        words = "– the counter put on and taken off within one process"
        yield Row(words, floor, milliseconds(plain * one["counted"]), one["counted"])
    yield from series_rows(python)
    yield saved_row(python, old)


def series_rows(python: str) -> Iterator[Row]:
    """Yield what the series costs in steps that are not saved, in CPU time of the process: it adds to the engine's.

    It is switched on and off within one process, as processes differ by more.
    """
    for workload, words, steps, most in SERIES_CASES:
        ratios, noises, floors = [], [], []
        for _ in range(SERIES_GENERATIONS):
            with tempfile.TemporaryDirectory() as folder, family(workload, ("ours",), folder, python, UNSAVED) as found:
                without, ours, again = series_samples(found[0], steps)
            ratios.append(pairwise(ours, without, "process"))
            noises.append(pairwise(again, without, "process"))
            floors.append(middle(without, "process") / steps)
        floor, mine, noise = median(floors), median(ratios), median(noises)
        without_words = f"without the series, {milliseconds(floor)}"
        yield Row(f"the series, {words}", without_words, milliseconds(floor * mine), mine, most)
        yield Row("– noise: without against without", without_words, milliseconds(floor * noise), noise)


def series_samples(worker: Worker, steps: int) -> list[list[Sample]]:
    """Measure windows without the series, with it, and without it, whose order changes."""
    operations = ("steps_without_series", "steps", "steps_without_series")
    samples: list[list[Sample]] = [[], [], []]
    for number in range(WINDOWS):
        for place in range(3):
            turn = (place + number) % 3
            samples[turn].append(worker.run(operations[turn], steps))
    return samples


def generation(workload: str, steps: int, python: str, old: str | None) -> dict[str, float]:
    """Measure unsaved steps once in new processes.

    Returns:
        `plain`, the CPU time of a plain window in seconds, and the ratios to it of `ours`, `again` (a second plain one)
        and `old` (to its own plain one; missing if there is none); `counted`, the ratio of steps with the counter to
        those without it in the process of `ours`.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        family(workload, ("plain", "ours", "plain"), folder, python, UNSAVED) as new,
    ):
        if old is None:
            plain, ours, again = interleave(new, WINDOWS, "steps", steps)
            others = []
        else:
            with family(workload, ("plain", "old"), folder, old, UNSAVED) as olds:
                plain, ours, again, *others = interleave([*new, *olds], WINDOWS, "steps", steps)
        with_counter = counted(new[1], WINDOWS, steps)
    ratios = {
        "plain": middle(plain, "cpu"),
        "ours": pairwise(ours, plain, "cpu"),
        "again": pairwise(again, plain, "cpu"),
        "counted": with_counter,
    }
    return {**ratios, "old": pairwise(others[1], others[0], "cpu")} if others else ratios


def saved_row(python: str, old: str | None) -> Row:
    """Return what a step waits that is saved as five reductions of 60 weights and 60 gradients."""
    with tempfile.TemporaryDirectory() as folder:
        with family("layers_60_wide", ("plain", "ours"), folder, python, SAVED) as new:
            floor, mine = extra(new, ROUNDS)
        theirs = None
        if old is not None:
            with family("layers_60_wide", ("plain", "old"), folder, old, SAVED) as olds:
                old_floor, old_extra = extra(olds, ROUNDS_OLD)
            theirs = old_extra / old_floor
    words = f"two nd.sum passes, {milliseconds(floor)}"
    what = "Gluon step saved as 5 reductions: extra time in training"
    return Row(what, words, milliseconds(mine), mine / floor, None, theirs)


def extra(workers: list[Worker], rounds: int) -> tuple[float, float]:
    """Return the time of two sums over all that is saved, and how much longer the second worker's period takes."""
    samples: list[list[Sample]] = [[], []]
    floors = []
    for number in range(rounds):
        floors.append(workers[0].run("sums", 2))
        for place in (0, 1) if number % 2 else (1, 0):
            samples[place].append(workers[place].run("saved_steps", PERIOD))
    return middle(floors, "wall"), middle(samples[1], "wall") - middle(samples[0], "wall")


def family(workload: str, variants: Sequence[str], folder: str, python: str, options: dict[str, object]) -> Family:
    """Return a family of Gluon trainings."""
    return Family(workload, variants, Path(folder), python, options, "mxnet")
