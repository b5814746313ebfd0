"""What a step of a GradientTape loop and of a monitored session costs, unsaved and saved."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.family import Family, interleave, middle, pairwise, smdebug_tensorflow_python
from benchmarks.table import Row, milliseconds

# Saved are, at each step, five reductions of all of these, or they themselves.
OPTIONS = {
    "interval": 1,
    "collections": ["weights", "biases", "gradients", "losses"],
    "reductions": "min,max,mean,std,l2_norm",
}
VARIANTS = ("plain", "unsaved", "plain", "reductions", "raw")
OLD_VARIANTS = ("plain", "old_unsaved", "old_reductions")
CASES = (
    # workload, words, steps a window, the old library's hook for it, which saves nothing where a tape is compiled
    ("eager_tape", "eager GradientTape", 10, "KerasHook"),
    ("compiled_tape", "GradientTape in tf.function", 30, ""),
    ("xla_tape", "GradientTape in tf.function with jit_compile", 30, ""),
    ("session", "MonitoredSession", 30, "SessionHook"),
)
GENERATIONS = 3
WINDOWS = 20


def rows() -> Iterator[Row]:
    """Yield the rows of the installed TensorFlow; none, and a word about it, where there is none."""
    yield from rows_of("tensorflow", CASES)


def rows_of(framework: str, cases: Sequence[tuple[str, str, int, str]]) -> Iterator[Row]:
    """Yield, for each workload, the unsaved step, the noise of that, and the step saved as reductions and as it is.

    Unsaved steps go by the CPU time of the process, TensorFlow's threads included, saved ones by the clock.
    """
    if importlib.util.find_spec("tensorflow") is None:
        print("there is no tensorflow: no rows with it", file=sys.stderr)
        return
    python = smdebug_tensorflow_python()
    for workload, words, steps, hook in cases:
        taken = [generation(framework, workload, steps) for _ in range(GENERATIONS)]
        one = {name: median(ratios[name] for ratios in taken) for name in taken[0]}
        old = old_ratios(framework, workload, steps, python, hook) if python and hook else {}
        low, high = (limit(ratios["again"] for ratios in taken) for limit in (min, max))
        for what, name, by, target in (
            (f"unsaved step, {words}", "unsaved", "cpu", 1.02),
            (f"– noise: plain against plain, {low:.4f} to {high:.4f}", "again", "cpu", None),
            (f"step saved as 5 reductions, {words}", "reductions", "wall", 1.5),
            ("– saved as it is", "raw", "wall", None),
        ):
            plain = one[by] / steps
            floor = f"plain step, {milliseconds(plain)}" + (" of CPU time" if by == "cpu" else "")
            yield Row(what, floor, milliseconds(plain * one[name]), one[name], target, old.get(name))


def generation(framework: str, workload: str, steps: int) -> dict[str, float]:
    """Measure all variants once in new processes.

    Returns:
        `cpu` and `wall`, the times of a plain window in seconds, and the ratios to it of `unsaved`, `again` (a second
        plain one; both by CPU time), `reductions` and `raw` (by the clock).
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(workload, VARIANTS, Path(folder), options=OPTIONS, framework=framework) as workers,
    ):
        # The first window compiles, and the agent makes ready what it needs for saved steps.
        interleave(workers, 1, "steps", steps)
        plain, unsaved, again, reductions, raw = interleave(workers, WINDOWS, "steps", steps)
    return {
        "cpu": middle(plain, "cpu"),
        "wall": middle(plain, "wall"),
        "unsaved": pairwise(unsaved, plain, "cpu"),
        "again": pairwise(again, plain, "cpu"),
        "reductions": pairwise(reductions, plain, "wall"),
        "raw": pairwise(raw, plain, "wall"),
    }


def old_ratios(framework: str, workload: str, steps: int, python: str, hook: str) -> dict[str, float]:
    """Measure the old library beside its own plain run; returns the ratios of `unsaved` and `reductions`."""
    options = {**OPTIONS, "hook": hook}
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(workload, OLD_VARIANTS, Path(folder), python, options, framework) as workers,
    ):
        interleave(workers, 1, "steps", steps)
        plain, unsaved, reductions = interleave(workers, WINDOWS, "steps", steps)
    return {"unsaved": pairwise(unsaved, plain, "cpu"), "reductions": pairwise(reductions, plain, "wall")}
