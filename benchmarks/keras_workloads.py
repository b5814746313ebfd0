"""Keras trainings, run a window of ``fit`` at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

BATCH = 128
LAYERS = 6
WIDTH = 256


class Fitting:
    """A model of some dense layers; a window is an epoch of ``count`` steps.

    Args:
        folder: where the variant writes its run.
        options: of ``compile``.
    """

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        layers = tf.keras.layers
        tf.keras.utils.set_random_seed(0)
        hidden = [layers.Dense(WIDTH, activation="relu") for _ in range(LAYERS)]
        self.model = tf.keras.Sequential([layers.Input((WIDTH,)), *hidden, layers.Dense(10)])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile("adam", loss, **options)
        self.callbacks: list[Any] = []

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Train a window for each command; the first one, in which everything is compiled, is not for measuring."""
        for _, count in commands:
            random = np.random.default_rng(count)
            x = random.standard_normal((BATCH * count, WIDTH), dtype=np.float32)
            y = random.integers(0, 10, BATCH * count)
            start = time.process_time(), time.perf_counter()
            self.model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=self.callbacks)
            cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
            reply({"cpu": cpu, "wall": wall, "process": cpu})


def compiled_by_xla(folder: Path) -> Fitting:
    """Return the same model, compiled by XLA."""
    return Fitting(folder, jit_compile=True)


def prepare() -> None:
    """Do nothing: TensorFlow must not run before the variants are forked, its threads would be gone."""


def start_threads() -> None:
    """Do nothing: TensorFlow has threads of its own in every variant."""


WORKLOADS: dict[str, Callable[[Path], Fitting]] = {"fit": Fitting, "fit_jit": compiled_by_xla}
