"""What one part of the agent costs: training with the agent, beside the same without that part."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.family import Family, Sample, interleave, middle, pairwise
from benchmarks.table import Row, milliseconds
from benchmarks.unsaved_step import OPTIONS

GENERATIONS = 6


@dataclass(frozen=True)
class Case:
    """A workload that the part is measured in.

    Args:
        workload: a name in the WORKLOADS of the framework's module.
        words: what it is.
        steps: of a window.
        windows: of each variant, in each generation of processes.
        first: steps that come before the windows.
        target: the most that the CPU time with the part may be, in parts of that without it.
        framework: see ``Family``.
    """

    workload: str
    words: str
    steps: int
    windows: int
    target: float | None = None
    first: int = 0
    framework: str = "pytorch"


@dataclass(frozen=True)
class Part:
    """A part of the agent.

    Args:
        words: what it is, in a row.
        without, with_it: the variants.
        beside: gives the seconds of a processor that the processes have taken by now which it has beside trainings.
        share: the most of one processor that these may take.
    """

    words: str
    without: str
    with_it: str
    beside: Callable[[], float] | None = None
    share: float = 0.0


def rows(part: Part, cases: Sequence[Case]) -> Iterator[Row]:
    """Yield, for each case, the ratio of a step with the part to one without it, and of two without it: the noise.

    Where it has processes beside the training, their share of one processor follows.
    """
    for case in cases:
        taken = [_generation(part, case) for _ in range(GENERATIONS)]
        floor = median(one["floor"] for one in taken) / case.steps
        against = f"without, {milliseconds(floor)}"
        for key, kind in (("cpu", "CPU time"), ("wall", "the clock")):
            for name, what in (("with", f"{part.words}, {case.words}, {kind}"), ("again", "– noise: without, twice")):
                ratios = [one[f"{name} {key}"] for one in taken]
                spread = f"; {min(ratios):.4f} to {max(ratios):.4f}"
                target = case.target if (name, key) == ("with", "cpu") else None
                yield Row(what + spread, against, milliseconds(floor * median(ratios)), median(ratios), target)
        if part.beside is not None:
            share = median(one["share"] for one in taken)
            limit = f"{part.share:.0%} of one processor"
            yield Row("– the process beside it, after its start", limit, f"{share:.2%}", share / part.share, 1.0)


def _generation(part: Part, case: Case) -> dict[str, float]:
    variants = (part.without, part.with_it, part.without)
    options = {**OPTIONS, "pin": case.framework == "pytorch"}
    beside = part.beside or time.monotonic
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(case.workload, variants, Path(folder), options=options, framework=case.framework) as workers,
    ):
        if case.first:
            interleave(workers, 1, "steps", case.first)
        before, began = beside(), time.monotonic()
        without, with_it, again = interleave(workers, case.windows, "steps", case.steps)
        share = (beside() - before) / (time.monotonic() - began)
    ratios = {**_ratios("with", with_it, without), **_ratios("again", again, without)}
    return {"floor": middle(without, "cpu"), "share": share, **ratios}


def _ratios(name: str, samples: list[Sample], floor: list[Sample]) -> dict[str, float]:
    return {f"{name} {key}": pairwise(samples, floor, key) for key in ("cpu", "wall")}
