"""TensorFlow training loops without Keras's ``fit``, run a window of steps at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.disk import forget_steps
from benchmarks.keras_workloads import LAYERS, WIDTH, dense, prepare, script, start_threads

__all__ = ["WORKLOADS", "prepare", "start_threads"]
BATCH = 128


class Loop:
    """A training loop.

    Args:
        folder: where the variant writes its run.
        make: makes what trains one step when it is called.
    """

    def __init__(self, folder: Path, make: Callable[[], Callable[[], object]]) -> None:
        self.folder = folder
        self.one_step = make()

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Train a window for each command; the first one, in which everything is compiled, is not for measuring."""
        step = self.one_step
        for _, count in commands:
            start = time.process_time(), time.perf_counter()
            for _ in range(count):
                step()
            cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
            forget_steps(self.folder / "run")
            reply({"cpu": cpu, "wall": wall, "process": cpu})


def tape(**options: Any) -> Callable[[], object]:
    """Make a step with a tape, inside a ``tf.function`` of these options if there are any."""
    tf.random.set_seed(0)
    model = dense(WIDTH, LAYERS)
    variables = model.trainable_variables
    criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(variables)
    x, y = tf.random.normal((BATCH, WIDTH)), tf.zeros(BATCH, tf.int32)

    def step(x: Any, y: Any) -> Any:
        with script.wrap_tape(tf.GradientTape()) as recorder:
            loss = criterion(y, model(x, training=True))
        optimizer.apply_gradients(zip(recorder.gradient(loss, variables), variables, strict=True))
        return loss

    return functools.partial(tf.function(step, **options) if options else step, x, y)


def monitored_session() -> Callable[[], object]:
    """Make a step that is a ``run`` of a monitored session."""
    v1: Any = tf.compat.v1
    v1.disable_eager_execution()
    v1.set_random_seed(0)
    x, y = v1.random_normal((BATCH, WIDTH), seed=1), tf.zeros(BATCH, tf.int32)
    for number in range(LAYERS + 1):
        units = 10 if number == LAYERS else WIDTH
        with v1.variable_scope(f"layer{number}"):
            kernel = v1.get_variable("kernel", (WIDTH, units))
            bias = v1.get_variable("bias", (units,), initializer=v1.zeros_initializer())
        x = tf.matmul(x, kernel) + bias
        x = x if number == LAYERS else tf.nn.relu(x)
    loss = v1.losses.sparse_softmax_cross_entropy(y, x)
    update = script.wrap_optimizer(v1.train.AdamOptimizer()).minimize(loss)
    return functools.partial(v1.train.MonitoredSession(hooks=script.hooks).run, update)


WORKLOADS: dict[str, Callable[[Path], Loop]] = {
    "eager_tape": functools.partial(Loop, make=tape),
    "compiled_tape": functools.partial(Loop, make=functools.partial(tape, jit_compile=False)),
    "xla_tape": functools.partial(Loop, make=functools.partial(tape, jit_compile=True)),
    "session": functools.partial(Loop, make=monitored_session),
}
