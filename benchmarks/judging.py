"""What it costs to ask all rules about a large run: time, memory, and two processes of a Dask cluster beside one.

Each time is that of the whole command, from its start. The runs take 4 and 12 GB of disk, one after the other.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.family import clean_environment
from benchmarks.judging_runs import TENSORS, as_launched, statistics_of_each, write_run
from benchmarks.table import Row
from smd_agent.formats.paths import INDEX_CACHE

STEPS = 10_000
ROUNDS = 3
SECONDS, MEMORY = 30.0, 500.0
RUNS = {"as the launcher saves them": as_launched, "with nine statistics each": statistics_of_each}


@dataclass(frozen=True)
class Judged:
    """One run of the command: seconds by the clock, seconds of CPU time, and the most memory, in MB."""

    clock: float
    cpu: float
    memory: float


def rows() -> Iterator[Row]:
    """Yield how much of our limits is taken, and how long two processes take beside one."""
    for name, what in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            write_run(run, STEPS, what())
            yield from _of_run(run, f"check, all rules, {STEPS:,} steps of {TENSORS} tensors {name}")


def _of_run(run: Path, what: str) -> Iterator[Row]:
    first, again, together = [], [], []
    with_cluster = importlib.util.find_spec("distributed") is not None
    for _ in range(ROUNDS):
        (run / INDEX_CACHE).unlink(missing_ok=True)
        first.append(_judged(run))
        again.append(_judged(run))
        if with_cluster:
            together.append(_judged(run, "--dask", "local:2"))
    for words, found in ((f"{what}: the first time", first), ("– again, with the cache", again)):
        clock, cpu = median(one.clock for one in found), median(one.cpu for one in found)
        yield Row(words, f"{SECONDS:g} s", f"{clock:.1f} s, {cpu:.1f} s of CPU time", clock / SECONDS, 1.0)
    memory = max(one.memory for one in (*first, *again))
    yield Row("– memory", f"{MEMORY:.0f} MB", f"{memory:.0f} MB", memory / MEMORY, 1.0)
    if together:
        alone, clock = (median(one.clock for one in found) for found in (again, together))
        yield Row(
            "– by a cluster of two processes", f"one process, {alone:.1f} s", f"{clock:.1f} s", clock / alone, 1.0
        )


def _judged(run: Path, *options: str) -> Judged:
    command = [sys.executable, "-m", "smd_agent", "check", str(run), *options]
    started = time.perf_counter()
    # Elsewhere than among the sources: what is installed is measured, with its kernel.
    process = subprocess.Popen(command, cwd=run.parent, env=clean_environment(), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    clock = time.perf_counter() - started
    code = process.returncode = os.waitstatus_to_exitcode(status)
    # With 2 a rule could not judge: nine statistics are not all that rules look at.
    assert code in (0, 2), code
    return Judged(clock, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)
