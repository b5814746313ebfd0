"""What reading a large run costs: opening it the first time and again, listing it, one number over all steps.

Each reading is a process of its own. A run of 1,000 steps is read in turns with smdebug 1.0.34, which takes 1 GB of
memory and eight seconds for that; one of 10,000 steps by us alone, against the limits that we have set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.family import Sample, clean_environment, smdebug_python
from benchmarks.reading_arms import SCALAR
from benchmarks.table import Row, milliseconds
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import INDEX_CACHE
from smd_agent.storage.run_writer import RunWriter

TENSORS = 500
STEPS = 10_000
STEPS_BESIDE = 1_000
ROUNDS = 5
OPENING, READING, MEMORY = 3.0, 1.0, 500.0
_ARMS = Path(__file__).with_name("reading_arms.py")
# What has just been written is not put into the cache.
_SETTLED = 4.0


def rows() -> Iterator[Row]:
    """Yield how much of smdebug's time we take, and how much of our limits."""
    with tempfile.TemporaryDirectory() as folder:
        python = smdebug_python()
        if python is not None:
            yield from _beside(Path(folder) / "beside", python)
        for name, varying in (("reductions", False), ("tensors whose sizes change", True)):
            yield from _alone(Path(folder) / name.split()[0], f"{STEPS:,} steps of {TENSORS} {name}", varying)


def _beside(run: Path, python: str) -> Iterator[Row]:
    write_run(run, STEPS_BESIDE, False)
    old, first, again = _in_turns(
        [(python, "old", False), (sys.executable, "ours", True), (sys.executable, "ours", False)], run
    )
    what = f"{STEPS_BESIDE:,} steps of {TENSORS} tensors"
    for key, words in (("open", "open"), ("list", "list its tensors and steps"), ("scalar", "one number of all steps")):
        yield _row(f"{what}: {words}", old, first, key)
        yield _row("– again, with the cache", old, again, key)
    whole = [{"all": sum(sample[key] for key in ("open", "list", "scalar"))} for sample in old]
    for words, ours in (("all three", first), ("– again, with the cache", again)):
        mine = [{"all": sum(sample[key] for key in ("open", "list", "scalar"))} for sample in ours]
        yield _row(f"{what}: {words}" if ours is first else words, whole, mine, "all", 0.1)
    floor, memory = (median(sample["memory"] for sample in arm) for arm in (old, again))
    yield Row("– memory", f"smdebug 1.0.34, {floor:.0f} MB", f"{memory:.0f} MB", memory / floor, 0.1)


def _alone(run: Path, what: str, varying: bool) -> Iterator[Row]:
    write_run(run, STEPS, varying)
    first, again = _in_turns([(sys.executable, "ours", True), (sys.executable, "ours", False)], run)
    yield _limit(f"{what}: open the first time", first, "open", None)
    yield _limit("– open again", again, "open", OPENING)
    yield _limit("– one number of all steps", again, "scalar", READING)
    memory = max(sample["memory"] for sample in (*first, *again))
    yield Row("– memory", f"{MEMORY:.0f} MB", f"{memory:.0f} MB", memory / MEMORY, 1.0)


def _row(what: str, old: list[Sample], ours: list[Sample], key: str, target: float | None = None) -> Row:
    floor, mine = (median(sample[key] for sample in arm) for arm in (old, ours))
    return Row(what, f"smdebug 1.0.34, {milliseconds(floor)}", milliseconds(mine), mine / floor, target)


def _limit(what: str, ours: list[Sample], key: str, limit: float | None) -> Row:
    mine, floor = median(sample[key] for sample in ours), limit or OPENING
    return Row(what, f"{floor:g} s", milliseconds(mine), mine / floor, None if limit is None else 1.0)


def _in_turns(arms: list[tuple[str, str, bool]], run: Path) -> list[list[Sample]]:
    """Read in turns; an arm is an interpreter, whose reader, and whether the cache is removed before."""
    samples: list[list[Sample]] = [[] for _ in arms]
    for number in range(ROUNDS + 1):
        for place, (python, reader, without) in enumerate(arms):
            if without:
                (run / INDEX_CACHE).unlink(missing_ok=True)
            command = [python, "-W", "ignore", str(_ARMS), reader, str(run)]
            environment = {**clean_environment(), "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
            # The first round only warms the file cache.
            if number:
                samples[place].append(json.loads(done.stdout.splitlines()[-1]))
    return samples


def write_run(root: Path, steps: int, varying: bool) -> None:
    """Write a finished run whose tensors are one loss and norms of gradients, or gradients of changing sizes."""
    writer = RunWriter(str(root))
    writer.start("worker_0", True)
    manager = CollectionManager()
    manager.get("losses").include("Loss")
    manager.get("gradients").include("^gradient")
    writer.write_collections(manager.to_json())
    names = [f"gradient/Net_layer{number // 4}.block{number % 4}.weight" for number in range(TENSORS - 1)]
    norms = tuple(f"smdebug/reductions/l2/{name}" for name in names)
    random = np.random.default_rng(0)
    for step in range(steps):
        file = writer.begin_step(step, ModeKeys.TRAIN, step)
        file.add(SCALAR, np.array(2 / (1 + step / 1000), np.float32))
        if varying:
            for name, size in zip(names, random.integers(1, 9, len(names)).tolist(), strict=True):
                file.add(name, np.zeros(size, np.float32))
        else:
            file.add_scalars(norms, random.random(len(norms)))
        writer.commit(file)
    writer.close(True)
    os.sync()
    time.sleep(_SETTLED)
