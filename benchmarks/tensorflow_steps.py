"""What a step of a GradientTape loop and of a monitored session costs, unsaved and saved."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.family import Family, counted, interleave, middle, pairwise, smdebug_tensorflow_python
from benchmarks.table import Row, milliseconds
from benchmarks.unsaved_step import spread

# Saved are, at each step, five reductions of all of these, or they themselves.
OPTIONS = {
    "interval": 1,
    "collections": ["weights", "biases", "gradients", "losses"],
    "reductions": "min,max,mean,std,l2_norm",
}
VARIANTS = ("plain", "unsaved", "plain", "reductions", "raw")
OLD_VARIANTS = ("plain", "old_unsaved", "old_reductions")
CASES = (
    # workload, words, saved and unsaved steps a window, the old library's hook, which saves nothing of a compiled tape
    ("eager_tape", "eager GradientTape", 10, 10, "KerasHook"),
    ("compiled_tape", "GradientTape in tf.function", 30, 60, ""),
    ("xla_tape", "GradientTape in tf.function with jit_compile", 30, 60, ""),
    ("session", "MonitoredSession", 30, 60, "SessionHook"),
)
GENERATIONS = 4
WINDOWS = 20
UNSAVED_WINDOWS = 12


def rows() -> Iterator[Row]:
    """Yield the rows of the installed TensorFlow; none, and a word about it, where there is none."""
    yield from rows_of("tensorflow", CASES)


def rows_of(framework: str, cases: Sequence[tuple[str, str, int, int, str]]) -> Iterator[Row]:
    """Yield, for each workload, the unsaved step, the noise of that, and the step saved as reductions and as it is.

    Unsaved steps go by the CPU time of the process, TensorFlow's threads included, saved ones by the clock.
    """
    if importlib.util.find_spec("tensorflow") is None:
        print("there is no tensorflow: no rows with it", file=sys.stderr)
        return
    python = smdebug_tensorflow_python()
    for workload, words, steps, unsaved, hook in cases:
        taken = [generation(framework, workload, steps, unsaved) for _ in range(GENERATIONS)]
        one = {name: median(ratios[name] for ratios in taken) for name in taken[0]}
        old = old_ratios(framework, workload, steps, unsaved, python, hook) if python and hook else {}
        for what, name, by, target in (
            (f"unsaved step, {words}", "ours", "cpu", 1.02),
            (f"– noise: plain against plain; {spread(taken)}", "again", "cpu", None),
            ("– the counter put on and taken off within one process", "counted", "cpu", None),
            (f"step saved as 5 reductions, {words}", "reductions", "wall", 1.5),
            ("– saved as it is", "raw", "wall", None),
        ):
            if name not in one:
                continue
            plain = one[by] / (unsaved if by == "cpu" else steps)
            floor = f"plain step, {milliseconds(plain)}" + (" of CPU time" if by == "cpu" else "")
            yield Row(what, floor, milliseconds(plain * one[name]), one[name], target, old.get(name))


def generation(framework: str, workload: str, steps: int, unsaved_steps: int) -> dict[str, float]:
    """Measure all variants once in new processes.

    Returns:
        `cpu` and `wall`, the times of a plain window of unsaved and of saved steps in seconds, and the ratios to them
        of `ours` and `again` (a second plain one; both by CPU time), `reductions` and `raw` (by the clock); of Keras
        also `counted`, the ratio of unsaved steps with what counts them to those without it, in the process of `ours`.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(workload, VARIANTS, Path(folder), options=OPTIONS, framework=framework) as workers,
    ):
        # The first window compiles, and the agent makes ready what it needs for saved steps.
        interleave(workers, 1, "steps", steps)
        plain, reductions, raw = interleave([workers[0], *workers[3:]], WINDOWS, "steps", steps)
        unsaved, ours, again = interleave(workers[:3], UNSAVED_WINDOWS, "steps", unsaved_steps)
        # What counts the steps of tapes is not a thing that can be taken off.
        with_counter = {"counted": counted(workers[1], UNSAVED_WINDOWS, unsaved_steps)} if framework == "keras" else {}
    return {
        **with_counter,
        "cpu": middle(unsaved, "cpu"),
        "wall": middle(plain, "wall"),
        "ours": pairwise(ours, unsaved, "cpu"),
        "again": pairwise(again, unsaved, "cpu"),
        "reductions": pairwise(reductions, plain, "wall"),
        "raw": pairwise(raw, plain, "wall"),
    }


def old_ratios(
    framework: str, workload: str, steps: int, unsaved_steps: int, python: str, hook: str
) -> dict[str, float]:
    """Measure the old library beside its own plain run; returns the ratios of `ours` and `reductions`."""
    options = {**OPTIONS, "hook": hook}
    with (
        tempfile.TemporaryDirectory() as folder,
        Family(workload, OLD_VARIANTS, Path(folder), python, options, framework) as workers,
    ):
        interleave(workers, 1, "steps", steps)
        plain, reductions = interleave([workers[0], workers[2]], WINDOWS, "steps", steps)
        floor, unsaved = interleave(workers[:2], UNSAVED_WINDOWS, "steps", unsaved_steps)
    return {"ours": pairwise(unsaved, floor, "cpu"), "reductions": pairwise(reductions, plain, "wall")}
