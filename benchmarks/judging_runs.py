"""Runs for the measuring of rules: written, not trained, with values in which nothing is wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import CHANNEL_SHARES, COUNTS
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.step_file import StepFile

TENSORS = 500
_OPS = ("min", "max", "mean", "std", *COUNTS, "l2", "abs_mean")
_COLLECTIONS = {
    "weights": r"^Net_.*weight$",
    "biases": r"^Net_.*bias$",
    "gradients": "^gradient/",
    "losses": "[Ll]oss_output",
    "layers": r"^block.*_output_0$",
    "updates": "^update(_ratio)?/",
    "optimizer": "^optimizer/",
    "input_digests": "^input_digest/",
}
_LOSS = "CrossEntropyLoss_output_0"
_EVALUATED_EVERY = 100
# What has just been written is not put into the cache of indexes.
_SETTLED = 4.0

Save = Callable[[StepFile, np.random.Generator, int], None]


def write_run(root: Path, steps: int, save: Save) -> None:
    """Write a finished run of one worker in which every hundredth step is an evaluation."""
    writer = RunWriter(str(root))
    writer.start("worker_0", True)
    manager = CollectionManager()
    for name, regex in _COLLECTIONS.items():
        manager.get(name).include(regex)
    writer.write_collections(manager.to_json())
    random = np.random.default_rng(0)
    counts = {ModeKeys.TRAIN: 0, ModeKeys.EVAL: 0}
    for step in range(steps):
        mode = ModeKeys.EVAL if step % _EVALUATED_EVERY == _EVALUATED_EVERY - 1 else ModeKeys.TRAIN
        file = writer.begin_step(step, mode, counts[mode])
        loss = 2 / (1 + step / 1000) + 0.01 * random.standard_normal()
        file.add(_LOSS, np.array(loss, np.float32))
        save(file, random, step)
        writer.commit(file)
        counts[mode] += 1
    writer.close(True)
    os.sync()
    time.sleep(_SETTLED)


def statistics_of_each() -> Save:
    """Nine statistics of 499 tensors: weights, gradients and outputs of layers, which have two shares more."""
    layers = (TENSORS - 1) // 3 + 1
    weights = [f"Net_block{number // 4}.layer{number % 4}.weight" for number in range(layers)]
    outputs = [f"block{number // 4}.layer{number % 4}_output_0" for number in range(layers)]
    names = [*weights, *(f"gradient/{name}" for name in weights)]
    names += outputs[: TENSORS - 1 - len(names)]
    outputs = [name for name in names if name in {*outputs}]

    def save(file: StepFile, random: np.random.Generator, step: int) -> None:
        _add_statistics(file, random, names, outputs)

    return save


def as_launched() -> Save:
    """What the launcher saves of 55 blocks: statistics, small tensors whole, updates, settings and a digest.

    A block has a matrix and a bias of 32 elements, with their gradients and updates, and an output.
    """
    blocks = [f"Net_block{number}" for number in range((TENSORS - 1) // 9)]
    matrices, biases = ([f"{block}.{part}" for block in blocks] for part in ("weight", "bias"))
    outputs = [f"block{number}_output_0" for number in range(len(blocks))]
    names = [*matrices, *(f"gradient/{name}" for name in matrices), *outputs]
    small = [*biases, *(f"gradient/{name}" for name in biases)]
    parameters = [*matrices, *biases]

    def save(file: StepFile, random: np.random.Generator, step: int) -> None:
        _add_statistics(file, random, names, outputs)
        for name in small:
            file.add(name, random.standard_normal(32, np.float32))
        for kind, scale in (("update", 0.01), ("update_ratio", 0.001)):
            for name in parameters:
                file.add(f"{kind}/{name}", np.array(scale * (0.5 + random.random())))
        for name, value in (("lr", 0.001), ("weight_decay", 0.01), ("eps", 1e-8)):
            file.add(f"optimizer/AdamW/{name}", np.array(value))
        file.add("input_digest/Net_0", random.integers(0, 2**62, 1))

    return save


def _add_statistics(file: StepFile, random: np.random.Generator, names: list[str], outputs: list[str]) -> None:
    """Statistics that could be those of standard normal values of which few are 0."""
    file.add_scalars(_places(names, _OPS), _statistics(random, len(names)).reshape(-1))
    file.add_scalars(_places(outputs, CHANNEL_SHARES), np.zeros(len(outputs) * len(CHANNEL_SHARES)))
    for name in names:
        file.add_shape(name, name, (64, 64), "float32")


def _statistics(random: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    found = np.abs(random.standard_normal((count, len(_OPS)))) / 10 + 1
    found[:, 0] *= -3
    found[:, 1] *= 3
    found[:, 2] -= 1
    found[:, 4] = 0.01
    found[:, 5:7] = 0
    found[:, 7] *= 64
    return found


_known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}


def _places(names: list[str], ops: tuple[str, ...]) -> tuple[str, ...]:
    key = tuple(names), ops
    if key not in _known:
        _known[key] = tuple(f"smdebug/reductions/{op}/{name}" for name in names for op in ops)
    return _known[key]
