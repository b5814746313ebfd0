"""Keras trainings, run a window of ``fit`` at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.disk import forget_steps

LAYERS = 6
WIDTH = 256


@dataclass
class Script:
    """What a script with a hook of its own hands to it, or hands it to; nothing by default."""

    hooks: list[Any] = field(default_factory=list)
    wrap_tape: Callable[[Any], Any] = lambda tape: tape
    wrap_optimizer: Callable[[Any], Any] = lambda optimizer: optimizer


script = Script()


class Fitting:
    """A model in training; a window is an epoch of ``count`` steps.

    Args:
        folder: where the variant writes its run.
        make: makes the model, which maps a batch to scores of ten classes.
        batch: its size.
        options: of ``compile``.
    """

    def __init__(self, folder: Path, make: Callable[[], Any], batch: int, **options: Any) -> None:
        self.folder = folder
        self.batch = batch
        tf.keras.utils.set_random_seed(0)
        self.model = make()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile("adam", loss, **options)

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Train a window for each command; the first one, in which everything is compiled, is not for measuring.

        In `uncounted_steps` the function that counts the steps is taken off the model meanwhile.
        """
        for operation, count in commands:
            random = np.random.default_rng(count)
            x = random.standard_normal((self.batch * count, *self.model.input_shape[1:]), dtype=np.float32)
            y = random.integers(0, 10, self.batch * count)
            counter = self.model.train_function
            if operation == "uncounted_steps":
                self.model.train_function = counter.function
            start = time.process_time(), time.perf_counter()
            self.model.fit(x, y, batch_size=self.batch, shuffle=False, verbose=0, callbacks=script.hooks)
            cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
            if operation == "uncounted_steps":
                self.model.train_function = counter
            forget_steps(self.folder / "run")
            reply({"cpu": cpu, "wall": wall, "process": cpu})


def dense(width: int, hidden: int) -> Any:
    """Build a model of dense layers."""
    layers = tf.keras.layers
    inside = [layers.Dense(width, activation="relu") for _ in range(hidden)]
    return tf.keras.Sequential([layers.Input((width,)), *inside, layers.Dense(10)])


def residual() -> Any:
    """Build a small residual net for images of 32 by 32."""
    layers = tf.keras.layers
    first = layers.Input((32, 32, 3))
    x = layers.Conv2D(32, 3, padding="same")(first)
    for channels in (32, 32, 64, 64, 128, 128):
        strides = 1 if x.shape[-1] == channels else 2
        y = layers.Conv2D(channels, 3, strides, padding="same")(x)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.BatchNormalization()(layers.Conv2D(channels, 3, padding="same")(y))
        if strides > 1:
            x = layers.Conv2D(channels, 1, strides)(x)
        x = layers.ReLU()(layers.Add()([x, y]))
    return tf.keras.Model(first, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def prepare() -> None:
    """Do nothing: TensorFlow must not run before the variants are forked, its threads would be gone."""


def start_threads() -> None:
    """Do nothing: TensorFlow has threads of its own in every variant."""


WORKLOADS: dict[str, Callable[[Path], Fitting]] = {
    "small_fit": functools.partial(Fitting, make=lambda: dense(64, 2), batch=32),
    "fit": functools.partial(Fitting, make=lambda: dense(WIDTH, LAYERS), batch=128),
    "fit_jit": functools.partial(Fitting, make=lambda: dense(WIDTH, LAYERS), batch=128, jit_compile=True),
    "convolutions": functools.partial(Fitting, make=residual, batch=16),
}
