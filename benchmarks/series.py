"""What the series costs: in a step, a row of eight numbers alone, and a run of a million rows, written and read."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

from benchmarks import switched
from benchmarks.table import Row
from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.hook import BaseHook
from smd_agent.core.modes import ModeKeys
from smd_agent.core.selection import Selection
from smd_agent.storage.run_writer import RunWriter

NAMES = tuple(
    f"series/{name}"
    for name in ("loss", "gradient_l2", "update_l2", "learning_rate", "seconds", "loss_scale", "skipped", "accuracy")
)
VALUES = (0.1, 1.5, 0.001, 0.01, 0.02, 65536.0, 0.0, 0.9)
PART = switched.Part("the series", "ours_without_series", "ours")
# Of short steps, most windows come after the first thousand rows, and have several pauses each: the turns of the other
# variants, which a shorter one would have amid a pause, would be taken for the time of its steps.
CASES = (
    switched.Case("three_layers", "MLP of 3 layers", steps=640, windows=20, target=1.02),
    switched.Case("milliseconds_3", "step of 3 ms", steps=64, windows=60, target=1.02),
    switched.Case("milliseconds_20", "step of 20 ms, of the first thousand", steps=1, windows=150),
    switched.Case("milliseconds_20", "step of 20 ms", steps=32, windows=10, target=1.01, first=1040),
    switched.Case("small_fit", "Keras fit of 3 layers", steps=600, windows=12, target=1.02, framework="keras"),
    switched.Case("fit", "Keras fit of 7 layers", steps=200, windows=12, target=1.02, framework="keras"),
)
MILLION = 1_000_000
MICROSECONDS, MEGABYTES, OPENED, READ = 3.0, 100.0, 1.0, 0.5
# Larger than the run gets: no row is left out.
_NO_LIMIT = 1 << 30


def rows() -> Iterator[Row]:
    """Yield the rows of steps; then how much of our limits is taken."""
    yield from switched.rows(PART, CASES)
    for pause in (0.0, 0.001, 0.005):
        with tempfile.TemporaryDirectory() as folder:
            took = sorted(_added(Path(folder) / "run", pause))
        words = f"a row of the series, 8 numbers, in a step of {pause * 1e3:g} ms"
        measured = f"{mean(took):.2f} µs, median {median(took):.2f} µs"
        yield Row(words, f"{MICROSECONDS:g} µs", measured, mean(took) / MICROSECONDS, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        _write(run)
        size = sum(path.stat().st_size for path in (run / "series").iterdir()) / 1e6
        yield Row(f"{MILLION:,} rows: files", f"{MEGABYTES:g} MB", f"{size:.0f} MB", size / MEGABYTES, 1.0)
        opened, read = min(_read(run) for _ in range(3))
        yield Row("– opened", f"{OPENED:g} s", f"{opened:.2f} s", opened / OPENED, 1.0)
        yield Row("– one scalar of all rows", f"{READ:g} s", f"{read:.2f} s", read / READ, 1.0)


def _hook(folder: Path) -> BaseHook:
    hook = BaseHook(
        RunWriter(str(folder), series_bytes=_NO_LIMIT), Selection(CollectionManager(create_default=True), ())
    )
    _begin(hook)
    hook.save_scalar("x", 1.0)
    hook.recorder.open_step()
    hook.recorder.end_step()
    hook.recorder.series.add("steps", NAMES, VALUES)
    hook.flush()
    assert hook.writing
    return hook


def _begin(hook: BaseHook) -> None:
    hook.position.begin(hook.recorder.clocks[ModeKeys.TRAIN])


def _added(folder: Path, pause: float) -> Iterator[float]:
    """Yield the microseconds of each row."""
    hook = _hook(folder)
    series, clock = hook.recorder.series, time.perf_counter
    for _ in range(int(4.0 / max(pause, 0.0001))):
        _begin(hook)
        end = clock() + pause
        while clock() < end:
            pass
        begun = clock()
        if series.wanted:
            series.add("steps", NAMES, VALUES)
        yield (clock() - begun) * 1e6
    hook.close()


def _write(folder: Path) -> None:
    hook = _hook(folder)
    for step in range(1, MILLION):
        _begin(hook)
        hook.recorder.series.add("steps", NAMES, VALUES)
        if not step % 10_000:
            # A step takes longer than nothing.
            hook.flush()
    hook.close()


def _read(folder: Path) -> tuple[float, float]:
    """Seconds that it takes to open the series, and to read one number of all of its steps."""
    begun = time.perf_counter()
    table = create_trial(str(folder)).series()["steps"]
    opened = time.perf_counter()
    assert len(table["series/loss"]) == MILLION
    return opened - begun, time.perf_counter() - opened
