"""What a boosting round costs, saved and unsaved: with XGBoost as it is installed, and with the oldest supported."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.family import Family, Sample, Worker, interleave, middle, oldest_python, pairwise, smdebug_python
from benchmarks.table import Row, milliseconds

NEVER = 10**9
UNSAVED = {"interval": NEVER, "first": 0, "pin": True}
GENERATIONS = 4
WINDOWS = 80
ROUNDS = 4

# By workload: words, rounds of a window, windows, and the most that the series may take. Short rounds come in windows
# of a whole training each: it goes by what a round takes by the clock, in which others must not have their turns.
SERIES = {"short_rounds": ("569 × 30", 1_990, 12, 1.02), "long_rounds": ("40,000 × 50", 2, 50, 1.01)}

# Every round from this one on; its own SHAP values are those of all trees so far.
FIRST = 90
SAVED = {"interval": 1, "first": FIRST, "pin": False}
SAVED_ROUNDS = 20
# Ten seconds a round, and no need to be exact.
OLD_SLOW_ROUNDS = 2
COLLECTIONS = ("full_shap", "average_shap", "metrics", "trees")


def rows() -> Iterator[Row]:
    """Yield the rows of each XGBoost; those of the old library stand beside the oldest, which it runs with."""
    oldest = oldest_python()
    if oldest is None:
        print("OLDEST_PYTHON is not set: no rows with the oldest XGBoost", file=sys.stderr)
    yield from rows_with(sys.executable, beside_old=oldest is None)
    if oldest is not None:
        yield from rows_with(oldest, beside_old=True)


def rows_with(python: str, beside_old: bool) -> Iterator[Row]:
    """Yield the rows of one interpreter."""
    command = [python, "-c", "import xgboost; print(xgboost.__version__)"]
    version = f"XGBoost {subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()}"
    old = smdebug_python() if beside_old else None
    yield from unsaved_rows(version, python, old)
    yield from series_rows(version, python)
    yield from saved_rows(version, python, old)


def unsaved_rows(version: str, python: str, old: str | None) -> Iterator[Row]:
    """Yield the unsaved round's ratio, then that of two plain trainings, which is the noise of the first."""
    taken = [generation(python, old) for _ in range(GENERATIONS)]
    one = {name: median(ratios[name] for ratios in taken) for name in taken[0]}
    floor = f"plain round, {milliseconds(one['plain'])}"
    ours, again = one["ours"], one["again"]
    yield Row(f"{version}: unsaved round", floor, milliseconds(one["plain"] * ours), ours, 1.01, one.get("old"))
    low, high = (limit(ratios["again"] for ratios in taken) for limit in (min, max))
    words = f"– noise: plain against plain, {low:.4f} to {high:.4f}"
    yield Row(words, floor, milliseconds(one["plain"] * again), again)


def generation(python: str, old: str | None) -> dict[str, float]:
    """Measure unsaved rounds once in new processes.

    Returns:
        `plain`, the CPU time of a plain round in seconds, and the ratios to it of `ours`, `again` (a second plain one)
        and `old` (to its own plain one; missing if there is none).
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        family(["plain", "ours_full_shap", "plain"], folder, python, UNSAVED) as new,
    ):
        if old is None:
            plain, ours, again = interleave(new, WINDOWS, "rounds", ROUNDS)
            others = []
        else:
            with family(["plain", "old_full_shap"], folder, old, UNSAVED) as olds:
                plain, ours, again, *others = interleave([*new, *olds], WINDOWS, "rounds", ROUNDS)
    ratios = {
        "plain": middle(plain, "cpu") / ROUNDS,
        "ours": pairwise(ours, plain, "cpu"),
        "again": pairwise(again, plain, "cpu"),
    }
    return {**ratios, "old": pairwise(others[1], others[0], "cpu")} if others else ratios


def series_rows(version: str, python: str) -> Iterator[Row]:
    """Yield what unsaved rounds cost with the series, beside those without it, and the noise of that."""
    for name, (size, rounds, windows, target) in SERIES.items():
        with tempfile.TemporaryDirectory() as folder:
            variants = ["without_series", "ours_metrics", "without_series"]
            with Family(name, variants, Path(folder), python, UNSAVED, "xgboost") as workers:
                # The first thousand rounds all have rows, whatever they take.
                interleave(workers, 1, "rounds", rounds)
                without, taken, again = interleave(workers, windows, "rounds", rounds)
        floor = middle(without, "cpu") / rounds
        ratio, noise = pairwise(taken, without, "cpu"), pairwise(again, without, "cpu")
        words = f"without, {milliseconds(floor)}"
        yield Row(
            f"{version}: unsaved round of {size} with the series", words, milliseconds(floor * ratio), ratio, target
        )
        yield Row("– noise: without against without", words, milliseconds(floor * noise), noise)


def saved_rows(version: str, python: str, old: str | None) -> Iterator[Row]:
    """Yield what rounds cost that are saved when there are 100 trees: CPU time of training, once also of writing."""
    with tempfile.TemporaryDirectory() as folder:
        with family(["plain", *(f"ours_{name}" for name in COLLECTIONS)], folder, python, SAVED) as workers:
            first, taken, floors = measure_saved(workers, SAVED_ROUNDS)
        olds = old_ratios(old, folder) if old else {}
    plain, *others = taken
    saved = dict(zip(COLLECTIONS, others, strict=True))
    trees = f"{FIRST + 2} to {FIRST + 1 + SAVED_ROUNDS} trees"

    def row(
        what: str, samples: Sequence[Sample], target: float | None = None, key: str = "cpu", beside: str = ""
    ) -> Row:
        floor, ratio = middle(plain, key), pairwise(samples, plain[: len(samples)], key)
        words = f"plain round, {milliseconds(floor)}"
        return Row(what, words, milliseconds(middle(samples, key)), ratio, target, olds.get(beside))

    yield row(f"{version}: round saved with full_shap, {trees}", saved["full_shap"], 10, beside="full_shap")
    yield row("– whole CPU time until on disk", saved["full_shap"], key="process")
    yield row("– the newest tree's predict(pred_contribs=True) alone", floors["shap_of_one_tree"])
    yield row(f"– the first saved round: all {FIRST + 1} trees at once", first)
    yield row("– round saved with average_shap", saved["average_shap"], beside="average_shap")
    yield row("– round saved with metrics only", saved["metrics"], beside="metrics")
    dump, mine = middle(floors["dump"], "cpu"), extra(saved["trees"], plain)
    words = f"get_dump(with_stats=True), {milliseconds(dump)}"
    yield Row(f"{version}: trees of a round, {trees}", words, milliseconds(mine), mine / dump, 1.0, olds.get("trees"))


def measure_saved(
    workers: Sequence[Worker], rounds: int
) -> tuple[list[Sample], list[list[Sample]], dict[str, list[Sample]]]:
    """Train up to the first saved round, then round by round in turn.

    Returns:
        The first saved round of the second worker, the other rounds of all workers, and of the first worker by name
        what XGBoost itself takes for a dump and for one tree's SHAP values at each round.
    """
    interleave(workers, 1, "rounds", FIRST)
    first = interleave(workers, 1, "rounds", 1)[1]
    taken: list[list[Sample]] = [[] for _ in workers]
    floors: dict[str, list[Sample]] = {"dump": [], "shap_of_one_tree": []}
    for _ in range(rounds):
        for samples, new in zip(taken, interleave(workers, 1, "saved_rounds", 1), strict=True):
            samples += new
        for operation, samples in floors.items():
            samples.append(workers[0].run(operation))
    return first, taken, floors


def old_ratios(python: str, folder: str) -> dict[str, float]:
    """Return the old library's ratios by collection, measured in the same way against a plain training beside it."""
    found: dict[str, float] = {}
    for names, rounds in ((COLLECTIONS[:2], OLD_SLOW_ROUNDS), (COLLECTIONS[2:], SAVED_ROUNDS)):
        with family(["plain", *(f"old_{name}" for name in names)], folder, python, SAVED) as workers:
            _, (plain, *others), floors = measure_saved(workers, rounds)
        for name, samples in zip(names, others, strict=True):
            found[name] = pairwise(samples, plain, "cpu")
            if name == "trees":
                found[name] = extra(samples, plain) / middle(floors["dump"], "cpu")
    return found


def extra(saved: Sequence[Sample], plain: Sequence[Sample]) -> float:
    """Return the median of how much longer a saved round takes than the same round of a plain training."""
    return median(one["cpu"] - other["cpu"] for one, other in zip(saved, plain, strict=True))


def family(variants: Sequence[str], folder: str, python: str, options: dict[str, int]) -> Family:
    """Return a family of boosted trainings."""
    return Family("boosting", variants, Path(folder), python, options, "xgboost")
