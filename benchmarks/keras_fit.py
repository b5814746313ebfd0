"""What a step of Keras's ``fit`` costs, unsaved and saved, with and without XLA."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.family import Family, interleave, middle, pairwise
from benchmarks.table import Row, milliseconds

NEVER = 10**9
COLLECTIONS = ["weights", "biases", "gradients", "losses"]
REDUCTIONS = "min,max,mean,std,l2_norm"
UNSAVED = {"interval": NEVER, "collections": COLLECTIONS}
SAVED = {"interval": 1, "collections": COLLECTIONS, "reductions": REDUCTIONS}
STEPS = 20
WINDOWS = 12


def rows() -> Iterator[Row]:
    """Yield the rows of the installed TensorFlow; none, and a word about it, where there is none."""
    if importlib.util.find_spec("tensorflow") is None:
        print("there is no tensorflow: no rows with Keras", file=sys.stderr)
        return
    for workload, words in (("fit", "fit"), ("fit_jit", "fit with jit_compile")):
        yield from unsaved_rows(workload, words)
        yield from saved_rows(workload, words)


def unsaved_rows(workload: str, words: str) -> Iterator[Row]:
    """Yield the unsaved step's ratio, then that of two plain trainings, which is the noise of the first."""
    with tempfile.TemporaryDirectory() as folder, family(workload, ["plain", "ours", "plain"], folder, UNSAVED) as all_:
        interleave(all_, 1, "steps", STEPS)
        plain, ours, again = interleave(all_, WINDOWS, "steps", STEPS)
    floor = middle(plain, "cpu") / STEPS
    for what, samples, target in (
        (f"unsaved step, Keras {words}", ours, 1.02),
        ("– noise: plain against plain", again, None),
    ):
        ratio = pairwise(samples, plain, "cpu")
        yield Row(what, f"plain step, {milliseconds(floor)}", milliseconds(floor * ratio), ratio, target)


def saved_rows(workload: str, words: str) -> Iterator[Row]:
    """Yield what a saved step costs: five reductions of all weights and gradients, and all of them as they are."""
    variants = ["plain", "ours", "ours_raw"]
    with tempfile.TemporaryDirectory() as folder, family(workload, variants, folder, SAVED) as all_:
        interleave(all_, 1, "steps", STEPS)
        plain, reduced, raw = interleave(all_, WINDOWS // 2, "steps", STEPS)
    floor = middle(plain, "wall") / STEPS
    for what, samples, target in ((f"saved step, reductions, Keras {words}", reduced, 1.5), ("– raw", raw, None)):
        ratio = pairwise(samples, plain, "wall")
        yield Row(what, f"plain step, {milliseconds(floor)}", milliseconds(floor * ratio), ratio, target)


def family(workload: str, variants: list[str], folder: str, options: dict[str, Any]) -> Family:
    """Return a family of Keras trainings."""
    return Family(workload, variants, Path(folder), options=options, framework="keras")
