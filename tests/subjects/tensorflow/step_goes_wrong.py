"""A loop with a GradientTape of which one step goes wrong; the fault and the way of the loop are named by options."""

from __future__ import annotations

import argparse

import numpy as np
import tensorflow as tf

FAULTS = ("none", "share", "row", "root")
BAD = 42


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(1)
        self.kernel = tf.Variable(draw.normal(size=(4, 8)), dtype=tf.float32, name="kernel")
        self.head = tf.Variable(draw.normal(size=(8, 1)), dtype=tf.float32, name="head")

    def __call__(self, x):
        return tf.tanh(x @ self.kernel) @ self.head


def share(found, x):
    squares = tf.square(found)
    return tf.reduce_mean(squares / tf.reduce_sum(x, axis=1, keepdims=True))  # HERE


def root(found, x):
    return tf.reduce_mean(tf.sqrt(tf.abs(found)))  # HERE


def square(found, x):
    return tf.reduce_mean(tf.square(found - 1.0))


parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS, default="none")
parser.add_argument("--way", choices=("eager", "function", "xla"), default="function")
parser.add_argument("--bad", type=int, default=BAD)
options = parser.parse_args()

loss_of = {"share": share, "root": root}.get(options.fault, square)
model, random = Model(), np.random.default_rng(2)
batches = random.random((64, 4)).astype("float32") + 0.1
if options.fault in ("share", "root"):
    batches[options.bad] = 0
if options.fault == "row":
    batches[options.bad, 1] = np.nan


def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(model(x), x)
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
    ):
        variable.assign_sub(0.01 * gradient)
    return loss


if options.way != "eager":
    step = tf.function(step, jit_compile=options.way == "xla")
for x in tf.data.Dataset.from_tensor_slices(batches).batch(8):
    print(float(step(x)))
