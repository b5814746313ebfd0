"""What of Python's stack the agent takes in trainings of TensorFlow: frames around the program's calls."""

from __future__ import annotations

import pytest
from harness.keras_ways import QUIET
from harness.runner import Runner

pytest.importorskip("tensorflow")

# As docs/tensorflow.md has it: around a model and each layer, a loss, a tape's gradient, a step of fit, if it is saved.
LAYER, LOSS, GRADIENT, FIT, SAVED_FIT = 2, 2, 4, 3, 6
SAVED = 4
DEPTHS = """
import sys
import numpy as np
import tensorflow as tf

keras = tf.keras
keras.utils.set_random_seed(0)
at = "built"


def depth(what):
    frame, number = sys._getframe(1), 0
    while frame is not None:
        frame, number = frame.f_back, number + 1
    print(at, what, number)


class Layer(keras.layers.Layer):
    def call(self, x):
        depth("layer")
        return x


class Loss(keras.losses.MeanSquaredError):
    def call(self, y_true, y_pred):
        depth("loss")
        return super().call(y_true, y_pred)


class Descent(keras.optimizers.SGD):
    def apply_gradients(self, *args, **kwargs):
        depth("update")
        return super().apply_gradients(*args, **kwargs)


@tf.custom_gradient
def same(x):
    def backward(gradient):
        depth("backward")
        return gradient

    return tf.identity(x), backward


x, y = np.random.rand(8, 4).astype("float32"), np.random.rand(8, 1).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), Layer()])
loss_of, optimizer = Loss(), Descent(0.1)
optimizer.build(model.trainable_variables)
if sys.argv[1] == "fit":
    model.compile(optimizer, loss_of, run_eagerly=True)
for at in range(8):
    if sys.argv[1] == "fit":
        model.train_on_batch(x, y)
        continue
    with tf.GradientTape() as tape:
        loss = same(loss_of(y, model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
"""


def more_frames(tmp_path, way):
    """How many frames more there are around what the program calls, in a step that is saved and in one that is not."""
    runner = Runner(tmp_path, ("tensorflow",))
    script = runner.write(DEPTHS)
    config = {"HookParameters": {"save_interval": SAVED, "save_all": True}}
    runs = [runner.plain(script, way, **QUIET), runner.by_variable(script, way, config=config, **QUIET)]
    plain, ours = (dict(line.rsplit(" ", 1) for line in run.stdout.splitlines()) for run in runs)
    assert plain.keys() == ours.keys()
    found = {key: int(ours[key]) - int(plain[key]) for key in plain}
    return [
        {key.split()[1]: more for key, more in found.items() if key.startswith(f"{at} ")} for at in (SAVED, SAVED + 2)
    ]


def test_a_loop_with_a_tape(tmp_path):
    expected = {"layer": 2 * LAYER, "loss": LOSS, "backward": GRADIENT, "update": 0}
    assert more_frames(tmp_path, "tape") == [expected, expected]


def test_fit(tmp_path):
    saved, unsaved = more_frames(tmp_path, "fit")
    inside = {"layer": 2 * LAYER, "loss": LOSS + 2, "update": 0}
    assert unsaved == {what: FIT + more for what, more in inside.items()}
    assert saved == {what: SAVED_FIT + more for what, more in inside.items()}
