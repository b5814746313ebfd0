"""What six reductions, and the median, of a whole model's parameters cost, against one torch.sum of each tensor.

The tensors have the shapes of ResNet-50 and of GPT-2 small; nothing is trained. Run as a module it measures, on one
thread, and prints the CPU times in seconds as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row, milliseconds

OPS = tuple((name, False) for name in ("min", "max", "mean", "std", "l1", "l2"))
ROUNDS = 15
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
    for name, times in json.loads(done.stdout).items():
        floor = times.pop("floor")
        words = f"one torch.sum of each, {milliseconds(floor)}"
        for what, seconds in times.items():
            yield Row(f"{name}: {what}", words, milliseconds(seconds), seconds / floor, TARGETS[what])


TARGETS = {
    "6 reductions, NumPy alone": 4.0,
    "6 reductions, compiled kernel": 2.0,
    "median, NumPy alone": 6.0,
    "median, compiled kernel": 6.0,
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


def measure(shapes: list[Shape]) -> dict[str, float]:
    """Return the middle time of each way, and of the floor; all of them take turns."""
    import torch

    from smd_agent.core import reductions

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

    ways = {"floor": floor}
    for kernel, how in ((False, "NumPy alone"), (True, "compiled kernel")):
        if reductions.use_kernel(kernel) == kernel:
            ways[f"6 reductions, {how}"] = reduce(kernel, OPS)
            ways[f"median, {how}"] = reduce(kernel, (("median", False),))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.thread_time()
            way()
            times[name].append(time.thread_time() - start)
    return {name: median(samples) for name, samples in times.items()}


if __name__ == "__main__":
    print(json.dumps({"ResNet-50's parameters": measure(resnet_50()), "GPT-2 small's parameters": measure(gpt_2())}))
