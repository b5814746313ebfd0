"""What files for TensorBoard cost the training thread, against torch's SummaryWriter given the same.

A step is saved as nine statistics of each tensor, with files for TensorBoard and without; the difference is ours. The
SummaryWriter is given the same scalars, which nobody charges it for, and the same tensors. Run as a module it measures,
on one thread, and prints the times in seconds as JSON. TensorBoard is that of ``TENSORBOARD_PYTHON``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row, milliseconds

ROUNDS = 15
TARGET = 0.2
SETS = {
    "ResNet-50's parameters, 161 tensors of 25.6 million elements": None,
    "100 tensors of 100,000 elements": (100, 100_000),
    "300 tensors of 500 elements": (300, 500),
}


def rows() -> Iterator[Row]:
    """Yield for each set the CPU time of the training thread, and the time by the clock."""
    python = os.environ.get("TENSORBOARD_PYTHON")
    if not python:
        return
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.board", _packages_of(python)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    for name, times in json.loads(done.stdout).items():
        for key, target in (("cpu", TARGET), ("clock", None)):
            theirs, ours = times["SummaryWriter"][key], times["with"][key] - times["without"][key]
            words = f"SummaryWriter, {milliseconds(theirs)}"
            head = f"TensorBoard's files of a step, training thread: {name}" if target else "– by the clock"
            yield Row(head, words, milliseconds(max(ours, 0.0)), ours / theirs, target)
        saved, board = times["without"]["cpu"], times["with"]["cpu"]
        yield Row(
            "– the whole saved step", f"without these files, {milliseconds(saved)}", milliseconds(board), board / saved
        )


def _packages_of(python: str) -> str:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class _Ours:
    """A hook of no framework that saves statistics of tensors, step by step."""

    def __init__(self, folder: Path, board: bool) -> None:
        from smd_agent.core.collection_manager import CollectionManager
        from smd_agent.core.hook import BaseHook
        from smd_agent.core.reduction_config import STATISTICS, ReductionConfig
        from smd_agent.core.save_config import SaveConfig
        from smd_agent.core.selection import Selection
        from smd_agent.storage.run_tensorboard import RunBoard
        from smd_agent.storage.run_writer import RunWriter

        selection = Selection(
            CollectionManager(create_default=True, built_in={"weights": ("weight",)}),
            ("weights",),
            reduction_config=ReductionConfig(reductions=[STATISTICS]),
            save_config=SaveConfig(save_interval=1),
        )
        selection.display.pictures = board
        writer = RunWriter(str(folder), board=RunBoard(None, selection.display.shown_in) if board else None)
        self.hook = BaseHook(writer, selection)

    def step(self, names: list[str], tensors: list[Any]) -> None:
        """Save one step."""
        hook = self.hook
        hook.position.begin(hook.position.clock, 1)
        hook.recorder.open_step()
        hook.recorder.save_tensors(names, tensors)
        hook.recorder.end_step()


def _timed(step: Callable[[], None], afterwards: Callable[[], object]) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.thread_time()
    step()
    times = time.thread_time() - cpu, time.perf_counter() - clock
    # So that no thread is at work when the next one is measured.
    afterwards()
    return times


def measure(shapes: Sequence[tuple[int, ...]], folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return the median times of a step of each way, which take turns."""
    import torch
    from torch.utils.tensorboard import SummaryWriter

    tensors = [torch.randn(shape) for shape in shapes]
    arrays = [tensor.numpy() for tensor in tensors]
    names = [f"layer_{number}.weight" for number in range(len(shapes))]
    ours = {"with": _Ours(folder / "with", board=True), "without": _Ours(folder / "without", board=False)}
    theirs = SummaryWriter(str(folder / "theirs"))
    operations = ("min", "max", "mean", "std", "l2", "abs_mean", "zero_share", "nan_count", "inf_count")
    tags = [f"weights/{name}/{operation}" for name in names for operation in operations]
    step = 0

    def given_to_them() -> None:
        for number, tag in enumerate(tags):
            theirs.add_scalar(tag, float(number), step)
        for name, tensor in zip(names, tensors, strict=True):
            theirs.add_histogram(f"weights/{name}", tensor, step)

    ways: dict[str, tuple[Callable[[], None], Callable[[], object]]] = {
        name: (partial(way.step, names, arrays), way.hook.flush) for name, way in ours.items()
    }
    ways["SummaryWriter"] = given_to_them, theirs.flush
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    order = [*ways]
    while step < rounds + 2:
        step += 1
        random.shuffle(order)
        for name in order:
            samples[name].append(_timed(*ways[name]))
    return {
        name: {"cpu": median(cpu for cpu, _ in found[2:]), "clock": median(clock for _, clock in found[2:])}
        for name, found in samples.items()
    }


def main() -> None:
    """Measure and print."""
    import torch

    from benchmarks.parameter_sets import resnet_50

    sys.path.append(sys.argv[1])
    torch.set_num_threads(1)
    found = {}
    for name, kind in SETS.items():
        shapes: list[tuple[int, ...]] = resnet_50() if kind is None else [(kind[1],)] * kind[0]
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measure(shapes, Path(folder), 3 if kind is None else ROUNDS)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
