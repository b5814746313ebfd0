"""Small training loops, run a window at a time. One step is forward, loss, backward, optimizer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.disk import touch_page_cache, wait_for
from benchmarks.nets import CNN, Ballast, Transformer


class Training:
    """A model in training, with the operations that a window may consist of.

    Args:
        model: maps a batch to class scores.
        batch: the input of every step.
        folder: where the run and scratch files are written.
    """

    def __init__(self, model: nn.Module, batch: torch.Tensor, folder: Path) -> None:
        self.model = model
        self.batch = batch
        self.folder = folder
        self.labels = torch.zeros(len(batch), dtype=torch.long)
        self.criterion = nn.CrossEntropyLoss()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.SGD(trained, lr=1e-4)
        self.steps_done = 0

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Run windows until there are no more commands."""
        self.warm_up()
        for operation, count in commands:
            reply(getattr(self, operation)(count))

    def warm_up(self) -> None:
        """Run the first steps, among them step 0, which every configuration saves."""
        self.steps(50 if sum(p.numel() for p in self.model.parameters()) < 10**6 else 4)

    def one_step(self) -> None:
        """Train one step."""
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(self.batch), self.labels)
        loss.backward()
        self.optimizer.step()
        self.steps_done += 1

    def steps(self, count: int) -> dict[str, float]:
        """Train `count` steps; return CPU time of this thread, of the process, and wall time."""
        step = self.one_step
        process, wall, cpu = time.process_time(), time.perf_counter(), time.thread_time()
        for _ in range(count):
            step()
        cpu = time.thread_time() - cpu
        return {"cpu": cpu, "wall": time.perf_counter() - wall, "process": time.process_time() - process}

    def saved_steps(self, count: int) -> dict[str, float]:
        """Train one period of `count` steps, the first of which is saved, and wait until that step is on disk.

        Steps are counted from 0, so the caller's interval must be `count`. What was written is removed afterwards, so
        that the disk's write-back does not disturb the next window.
        """
        while self.steps_done % count:
            self.one_step()
        touch_page_cache(self.folder)
        saved = self.steps_done
        process, start = time.process_time(), time.perf_counter()
        times = self.steps(count)
        index = self.folder / "run" / "index" / f"{saved // 1000:09d}" / f"{saved:012d}_worker_0.json"
        if (self.folder / "run").exists():
            wait_for(index)
        times["disk"] = time.perf_counter() - start
        times["process"] = time.process_time() - process
        events = self.folder / "run" / "events" / f"{saved:012d}"
        if events.exists():
            times["bytes"] = float(sum(file.stat().st_size for file in events.iterdir()))
            shutil.rmtree(events)
        return times

    def sums(self, count: int) -> dict[str, float]:
        """Time `count` passes of torch.sum over all weights and all gradients."""
        tensors = [p.detach() for p in self.model.parameters() if p.dim() > 1]
        tensors += [p.grad for p in self.model.parameters() if p.dim() > 1 and p.grad is not None]
        wall = time.perf_counter()
        for _ in range(count):
            for tensor in tensors:
                tensor.sum()
        return {"wall": time.perf_counter() - wall}

    def tofile(self, count: int) -> dict[str, float]:
        """Time `count` writes of all weights, as one array, with ndarray.tofile to a new file."""
        weights = np.concatenate([p.detach().numpy().ravel() for p in self.model.parameters() if p.dim() > 1])
        path = self.folder / "floor.bin"
        total = 0.0
        for _ in range(count):
            touch_page_cache(self.folder)
            wall = time.perf_counter()
            weights.tofile(path)
            total += time.perf_counter() - wall
            path.unlink()
        return {"wall": total, "bytes": float(weights.nbytes)}


def prepare() -> None:
    """Let torch compute on the calling thread only."""
    torch.set_num_threads(1)


def start_threads() -> None:
    """Let torch start a thread of its own, as it does by itself on more than one core, then compute on one thread.

    A process that has a second thread pays about 1 % for locks in malloc. Real runs do have threads, so plain runs
    without one would charge the first thread of the process to whoever starts it.
    """
    torch.set_num_threads(2)
    torch.ones(10**6).sum()
    torch.set_num_threads(1)


def three_layers(folder: Path) -> Training:
    """Build an MLP of three layers."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return Training(model, torch.randn(16, 32), folder)


def of_width(width: int, batch: int, folder: Path) -> Training:
    """Build an MLP of three layers of one width."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    return Training(model, torch.randn(batch, width), folder)


def modules_81(folder: Path) -> Training:
    """Build an MLP of 81 modules: the root, 40 linear layers and 40 activations."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(40):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    return Training(nn.Sequential(*layers), torch.randn(16, 64), folder)


def layers_150(folder: Path) -> Training:
    """Build 150 linear layers without biases: 11 million weights, as many gradients.

    The weights keep the size of what passes through; with torch's own, the gradients of such a chain fade below 1e-30.
    """
    torch.manual_seed(0)
    layers = [nn.Linear(272, 272, bias=False) for _ in range(150)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=272**-0.5)
    return Training(nn.Sequential(*layers), torch.randn(8, 272), folder)


def raw_100_mb(folder: Path) -> Training:
    """Build the model with 100 MB to save and nothing to compute."""
    torch.manual_seed(0)
    return Training(Ballast(), torch.randn(4, 16), folder)


def cnn(folder: Path) -> Training:
    """Build a CNN of 13 modules for images of 32 by 32."""
    torch.manual_seed(0)
    return Training(CNN(), torch.randn(4, 3, 32, 32), folder)


def transformer(folder: Path) -> Training:
    """Build a transformer of 12 layers, 125 modules, that tells the class of a text of 32 words."""
    torch.manual_seed(0)
    return Training(Transformer(), torch.randint(0, 1000, (4, 32)), folder)


WORKLOADS: dict[str, Callable[[Path], Training]] = {
    "three_layers": three_layers,
    "milliseconds_3": partial(of_width, 256, 224),
    "milliseconds_20": partial(of_width, 512, 512),
    "modules_81": modules_81,
    "cnn": cnn,
    "transformer": transformer,
    "layers_150": layers_150,
    "raw_100_mb": raw_100_mb,
}
