"""Runs variants of one workload side by side, in short windows on command, so that they share the machine's moods.

A family is one process that imports the framework, then forks a worker for each variant: variants compared with each
other have the same memory layout, which otherwise differs from process to process by more than the costs measured.
Where things lie also decides what the agent costs a short step, so that every family has a layout of its own: hashes,
and with them the order of dicts and sets, begin with another seed. The same seeds come in every run.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Sample = dict[str, float]

_seeds = itertools.count()


class Worker:
    """One forked variant, waiting for commands."""

    def __init__(self, variant: str, connection: socket.socket) -> None:
        self.variant = variant
        self._stream = connection.makefile("rw")

    def run(self, operation: str, count: int = 1) -> Sample:
        """Run one window and return its times in seconds.

        Raises:
            RuntimeError: the worker is gone.
        """
        print(json.dumps([operation, count]), file=self._stream, flush=True)
        answer = self._stream.readline()
        if not answer:
            raise RuntimeError(f"the worker {self.variant!r} ended; its message is above")
        result: Sample = json.loads(answer)
        return result

    def hang_up(self) -> None:
        """Give no more commands."""
        self._stream.close()


@dataclass
class Family:
    """One interpreter and its forked variants; a context manager.

    Args:
        workload: a name in the WORKLOADS of the framework's module, see `benchmarks.worker`.
        variants: names in its ARMS; the same name may come twice (the pair shows the noise).
        folder: where the variants write their runs.
        interpreter: the Python to use.
        options: passed to the arms; `pin` keeps all variants on one core.
        framework: pytorch, accelerator, xgboost, keras, tensorflow or mxnet.
    """

    workload: str
    variants: Sequence[str]
    folder: Path
    interpreter: str = sys.executable
    options: dict[str, Any] = field(default_factory=dict)
    framework: str = "pytorch"

    def __enter__(self) -> list[Worker]:
        pairs = [socket.socketpair() for _ in self.variants]
        spec = {
            "framework": self.framework,
            "workload": self.workload,
            "variants": [(name, theirs.fileno()) for name, (_, theirs) in zip(self.variants, pairs, strict=True)],
            "folder": str(self.folder),
            "options": self.options,
        }
        self._process = subprocess.Popen(
            [self.interpreter, "-W", "ignore", "-m", "benchmarks.worker", json.dumps(spec)],
            cwd=ROOT,
            env={**clean_environment(), "PYTHONHASHSEED": str(next(_seeds))},
            pass_fds=[theirs.fileno() for _, theirs in pairs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for _, theirs in pairs:
            theirs.close()
        return [Worker(name, ours) for name, (ours, _) in zip(self.variants, pairs, strict=True)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()


def counted(worker: Worker, windows: int, steps: int) -> float:
    """Return the ratio of steps with the step counter to those without it, in windows that follow each other."""
    samples: dict[str, list[Sample]] = {"steps": [], "uncounted_steps": []}
    for number in range(windows):
        for operation in sorted(samples, reverse=bool(number % 2)):
            samples[operation].append(worker.run(operation, steps))
    return pairwise(samples["steps"], samples["uncounted_steps"], "cpu")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without the variables of either debugger, and with one thread."""
    ours = ("SMD", "USE_SMDEBUG")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    return {**kept, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "SMDEBUG_LOG_LEVEL": "off"}


def smdebug_python() -> str | None:
    """Return the interpreter that has the real smdebug, None when the variable is unset or empty."""
    return os.environ.get("SMDEBUG_PYTHON") or None


def oldest_python() -> str | None:
    """Return the interpreter that has the oldest frameworks we support, None when the variable is unset or empty."""
    return os.environ.get("OLDEST_PYTHON") or None


def mxnet_python() -> str | None:
    """Return the interpreter that has MXNet, None when the variable is unset or empty."""
    return os.environ.get("MXNET_PYTHON") or None


def smdebug_mxnet_python() -> str | None:
    """Return the interpreter that has MXNet and the real smdebug, None when the variable is unset or empty."""
    return os.environ.get("SMDEBUG_MXNET_PYTHON") or None


def smdebug_tensorflow_python() -> str | None:
    """Return the interpreter that has TensorFlow and the real smdebug, None when the variable is unset or empty."""
    return os.environ.get("SMDEBUG_TENSORFLOW_PYTHON") or None


def interleave(workers: Sequence[Worker], rounds: int, operation: str, count: int) -> list[list[Sample]]:
    """Run windows of all workers in an order shuffled anew each round; return the samples of each worker."""
    samples: list[list[Sample]] = [[] for _ in workers]
    order = list(range(len(workers)))
    shuffle = random.Random(os.urandom(8)).shuffle
    for _ in range(rounds):
        shuffle(order)
        for number in order:
            samples[number].append(workers[number].run(operation, count))
    return samples


def pairwise(samples: Sequence[Sample], floor: Sequence[Sample], key: str) -> float:
    """Return the median, over the rounds, of the ratio of two windows that ran within the same moment."""
    return median(one[key] / other[key] for one, other in zip(samples, floor, strict=True))


def middle(samples: Sequence[Sample], key: str) -> float:
    """Return the median of one of the times."""
    return median(sample[key] for sample in samples)
