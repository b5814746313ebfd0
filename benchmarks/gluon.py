"""Small Gluon training loops, run a window at a time. One step is forward, loss, backward, Trainer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from benchmarks.disk import touch_page_cache, wait_for

# More than the steps that have a row of the series each.
_MANY = 1200


class Training:
    """A net in training, with the operations that a window may consist of.

    Args:
        net: maps a batch to class scores.
        width: of the rows of a batch.
        folder: where the run is written.
        warm: how many steps the first window is preceded by; among them step 0, which every configuration saves.
    """

    def __init__(self, net: nn.HybridSequential, width: int, folder: Path, warm: int) -> None:
        self.net = net
        self.folder = folder
        self.batch, self.labels = nd.random.uniform(shape=(16, width)), nd.zeros(16)
        self.criterion = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4})
        self.steps_done = 0
        self._warm = warm

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Run windows until there are no more commands."""
        self.steps(self._warm)
        for operation, count in commands:
            reply(getattr(self, operation)(count))

    def one_step(self) -> None:
        """Train one step."""
        with autograd.record():
            loss = self.criterion(self.net(self.batch), self.labels)
        loss.backward()
        self.trainer.step(16)
        self.steps_done += 1

    def steps(self, count: int) -> dict[str, float]:
        """Train `count` steps and wait for them; return CPU time of this thread, of the process, and wall time."""
        step = self.one_step
        process, wall, cpu = time.process_time(), time.perf_counter(), time.thread_time()
        for _ in range(count):
            step()
        nd.waitall()
        cpu = time.thread_time() - cpu
        return {"cpu": cpu, "wall": time.perf_counter() - wall, "process": time.process_time() - process}

    def uncounted_steps(self, count: int) -> dict[str, float]:
        """Train as `steps` does, with the counter taken off the net's class meanwhile."""
        kind: Any = type(self.net)
        counter = vars(kind).get("__call__")
        if counter is not None:
            del kind.__call__
        times = self.steps(count)
        if counter is not None:
            kind.__call__ = counter
        return times

    def steps_without_series(self, count: int) -> dict[str, float]:
        """Train as `steps` does, with nothing told meanwhile of what the series is made of."""
        from smd_agent.mxnet.backward_calls import passes
        from smd_agent.mxnet.trainer_watch import updates

        every_step: Any = updates.listener or updates._resting
        told = passes.listener, updates.listener, updates.rest
        passes.listener, updates.listener, updates.rest = None, None, 0
        begun = time.perf_counter()
        times = self.steps(count)
        passes.listener, updates.listener, updates.rest = told
        # These steps are not a part of those that it measures.
        every_step._times.ended += time.perf_counter() - begun
        return times

    def saved_steps(self, count: int) -> dict[str, float]:
        """Train one period of `count` steps, the first of which is saved, and wait until that step is on disk.

        Steps are counted from 0, so the caller's interval must be `count`. What was written is removed afterwards.
        """
        while self.steps_done % count:
            self.one_step()
        touch_page_cache(self.folder)
        nd.waitall()
        saved = self.steps_done
        times = self.steps(count)
        if (self.folder / "run").exists():
            wait_for(self.folder / "run" / "index" / f"{saved // 1000:09d}" / f"{saved:012d}_worker_0.json")
        shutil.rmtree(self.folder / "run" / "events" / f"{saved:012d}", ignore_errors=True)
        return times

    def sums(self, count: int) -> dict[str, float]:
        """Time `count` passes of MXNet's own sum over all weights and all gradients."""
        weights = [parameter for parameter in self.net.collect_params().values() if "weight" in parameter.name]
        arrays = [array for parameter in weights for array in (parameter.data(), parameter.grad())]
        nd.waitall()
        wall = time.perf_counter()
        for _ in range(count):
            for array in arrays:
                array.sum()
        nd.waitall()
        return {"wall": time.perf_counter() - wall}


def prepare() -> None:
    """Do nothing: MXNet starts its threads anew in a forked process, as long as nothing has been computed before."""


def start_threads() -> None:
    """Do nothing: MXNet has threads of its own in any case."""


def dense_layers(sizes: list[int], activation: str | None, *, hybridize: bool) -> nn.HybridSequential:
    """Build a net of dense layers; ``sizes`` has the width of its rows first."""
    mx.random.seed(0)
    net = nn.HybridSequential()
    with net.name_scope():
        for width, units in pairwise(sizes):
            net.add(nn.Dense(units, activation=activation, in_units=width))
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize(static_alloc=True)
    return net


def three_layers(folder: Path) -> Training:
    """Build an MLP of three layers."""
    return Training(dense_layers([32, 64, 64, 10], "relu", hybridize=False), 32, folder, 30)


def three_layers_hybridized(folder: Path) -> Training:
    """Build the same, run as one operation."""
    return Training(dense_layers([32, 64, 64, 10], "relu", hybridize=True), 32, folder, 30)


def layers_41(folder: Path) -> Training:
    """Build an MLP of 41 layers."""
    return Training(dense_layers([32] * 41 + [10], "relu", hybridize=False), 32, folder, 10)


def layers_60_wide(folder: Path) -> Training:
    """Build 60 layers of 272 by 272: 4.4 million weights, as many gradients."""
    return Training(dense_layers([272] * 61, None, hybridize=True), 272, folder, 4)


def milliseconds_1(folder: Path) -> Training:
    """Build an MLP of three layers whose step takes less than 1 ms."""
    return Training(dense_layers([32, 64, 64, 10], "relu", hybridize=False), 32, folder, _MANY)


def milliseconds_3(folder: Path) -> Training:
    """Build a net whose step takes about 3 ms on one core."""
    return Training(dense_layers([256] * 7 + [10], "relu", hybridize=True), 256, folder, _MANY)


def milliseconds_20(folder: Path) -> Training:
    """Build a net whose step takes about 20 ms on one core."""
    return Training(dense_layers([512] * 14 + [10], "relu", hybridize=True), 512, folder, _MANY)


WORKLOADS: dict[str, Callable[[Path], Training]] = {
    "three_layers": three_layers,
    "three_layers_hybridized": three_layers_hybridized,
    "layers_41": layers_41,
    "layers_60_wide": layers_60_wide,
    "milliseconds_1": milliseconds_1,
    "milliseconds_3": milliseconds_3,
    "milliseconds_20": milliseconds_20,
}
