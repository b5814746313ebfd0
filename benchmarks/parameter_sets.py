"""What six reductions, nine statistics, and the median of many tensors cost, against one torch.sum of each tensor.

The tensors have the shapes of ResNet-50 and of GPT-2 small, or are large or small ones alone; nothing is trained. Run
as a module it measures, on one thread, and prints the CPU times in seconds as JSON, and the bytes that a saved step of
GPT-2 small's weights and gradients takes.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row, milliseconds

OPS = tuple((name, False) for name in ("min", "max", "mean", "std", "l1", "l2"))
ROUNDS = 15
IN_CACHE = "1 tensor of 100,000 elements that is in the processor's cache"
Shape = tuple[int, ...]


def rows() -> Iterator[Row]:
    """Yield for each set the six reductions by NumPy and by the kernel, and the median; without a kernel by NumPy."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.parameter_sets"],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    sets = json.loads(done.stdout)
    size = sets.pop("bytes")
    for name, times in sets.items():
        floor = times.pop("floor")
        words = f"one torch.sum of each, {milliseconds(floor)}"
        for what, seconds in times.items():
            aimed_at = name in MODELS or (name != IN_CACHE and what.endswith("kernel"))
            target = TARGETS[what] if aimed_at else None
            yield Row(f"{name}: {what}", words, milliseconds(seconds), seconds / floor, target)
    words = f"raw, {size['raw'] / 1e6:.0f} MB"
    what = "GPT-2 small's weights and gradients: 9 statistics, bytes of a saved step"
    yield Row(what, words, f"{size['statistics'] / 1e6:.2f} MB", size["statistics"] / size["raw"], 0.005)


TARGETS = {
    "6 reductions, NumPy alone": 4.0,
    "6 reductions, compiled kernel": 2.0,
    "median, NumPy alone": 6.0,
    "median, compiled kernel": 6.0,
    "9 statistics, NumPy alone": 5.0,
    "9 statistics, compiled kernel": 2.5,
}


def resnet_50() -> list[Shape]:
    """Return the shapes of ResNet-50's parameters: 25.6 million in 161 tensors."""
    shapes: list[Shape] = [(64, 3, 7, 7), (64,), (64,)]
    before = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            convolutions = [(width, before, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            if block == 0:
                convolutions.append((4 * width, before, 1, 1))
            for shape in convolutions:
                shapes += [shape, shape[:1], shape[:1]]
            before = 4 * width
    return [*shapes, (1000, before), (1000,)]


def gpt_2() -> list[Shape]:
    """Return the shapes of GPT-2 small's parameters: 124 million in 148 tensors."""
    width = 768
    norm = [(width,), (width,)]
    attention = [(width, 3 * width), (3 * width,), (width, width), (width,)]
    network = [(width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    layer: list[Shape] = [*norm, *attention, *norm, *network]
    return [(50257, width), (1024, width), *12 * layer, *norm]


def measure(shapes: list[Shape], statistics_only: bool = False) -> dict[str, float]:
    """Return the middle time of each way, and of the floor; all of them take turns."""
    import torch

    from smd_agent.core import reductions
    from smd_agent.core.reduction_config import CHANNEL_SHARES, STATISTICS, ReductionConfig

    # Parameters have no channels.
    statistics = tuple(op for op in ReductionConfig([STATISTICS]).ops if op[0] not in CHANNEL_SHARES)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tensors = [0.05 * torch.randn(shape) for shape in shapes]
    arrays = [tensor.numpy() for tensor in tensors]

    def floor() -> None:
        for tensor in tensors:
            tensor.sum()

    def reduce(kernel: bool, ops: tuple[tuple[str, bool], ...]) -> Callable[[], None]:
        def run() -> None:
            # Choosing takes microseconds.
            reductions.use_kernel(kernel)
            reductions.reduce_batch(arrays, ops)

        return run

    ways: dict[str, Callable[[], None]] = {"floor": floor}
    for kernel, how in ((False, "NumPy alone"), (True, "compiled kernel")):
        if reductions.use_kernel(kernel) == kernel:
            ways[f"9 statistics, {how}"] = reduce(kernel, statistics)
            if not statistics_only:
                ways[f"6 reductions, {how}"] = reduce(kernel, OPS)
                ways[f"median, {how}"] = reduce(kernel, (("median", False),))
    # What takes microseconds is done often enough to be measured.
    return in_turns(ways, max(1, 2_000_000 // sum(tensor.numel() for tensor in tensors)))


def in_turns(ways: dict[str, Callable[[], None]], again: int) -> dict[str, float]:
    """Return the middle CPU time of each way; each is done ``again`` times when it is its turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.thread_time()
            for _ in range(again):
                way()
            times[name].append((time.thread_time() - start) / again)
    return {name: median(samples) for name, samples in times.items()}


def saved_bytes(shapes: list[Shape]) -> dict[str, int]:
    """Return the bytes of a saved step with the statistics of as many weights and gradients, and of their values."""
    import numpy as np

    from smd_agent.core.channel_axes import ChannelAxes
    from smd_agent.core.collection import Collection
    from smd_agent.core.modes import ModeKeys
    from smd_agent.core.reduction_config import SMALL, STATISTICS, ReductionConfig
    from smd_agent.core.save_config import SaveConfig
    from smd_agent.core.save_plan import SavePlan
    from smd_agent.core.value_writing import write_group
    from smd_agent.storage.run_writer import RunWriter

    form = ReductionConfig([STATISTICS], save_shape=True, save_raw_up_to=SMALL)
    plan = SavePlan([Collection("all", ["."], reduction_config=form, save_config=SaveConfig())])
    with tempfile.TemporaryDirectory() as folder:
        run = RunWriter(folder)
        run.start("worker_0", alone=True)
        step = run.begin_step(0, ModeKeys.TRAIN, 0)
        for prefix in ("GPT2_transformer.", "gradient/GPT2_transformer."):
            names = tuple(f"{prefix}h.{number // 12}.layer{number % 12}.weight" for number in range(len(shapes)))
            captured = {i: (np.zeros(shape, np.float32), None) for i, shape in enumerate(shapes)}
            write_group(step, names, captured, plan.group(names, plan.due(ModeKeys.TRAIN, 0)), ChannelAxes())
        run.commit(step)
        run.close(end_marker=True)
        stored = [path for place in ("events", "index") for path in Path(folder, place).rglob("*") if path.is_file()]
        found = sum(path.stat().st_size for path in stored)
    return {"raw": 2 * sum(4 * math.prod(shape) for shape in shapes), "statistics": found}


MODELS = {"ResNet-50's parameters": resnet_50(), "GPT-2 small's parameters": gpt_2()}
# Only the statistics of these.
ALIKE: dict[str, tuple[int, Shape]] = {
    "1 tensor of 1,000,000 elements": (1, (1_000_000,)),
    "100 tensors of 100,000 elements": (100, (100_000,)),
    "300 tensors of 500 elements": (300, (500,)),
    # torch.sum is that much faster where it waits for no memory; a model's tensors are hardly ever there.
    IN_CACHE: (1, (100_000,)),
}

if __name__ == "__main__":
    found: dict[str, object] = {name: measure(shapes) for name, shapes in MODELS.items()}
    for set_name, (count, shape) in ALIKE.items():
        found[set_name] = measure(count * [shape], statistics_only=True)
    print(json.dumps({**found, "bytes": saved_bytes(gpt_2())}))
