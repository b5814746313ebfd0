"""What GradientTape programs that know nothing of the agent use to write down what a saved step has to hold.

A key of what is written down is "<step>|<name>", or "<step>~<name>" for what NumPy computed and rounds otherwise.
"""

import hashlib
import sys

import numpy as np
import tensorflow as tf

EXPECTED, STEP = {}, 0
rng = np.random.default_rng(0)
layers = tf.keras.layers


def name_of(variable):
    return getattr(variable, "path", None) or variable.name.split(":")[0]


def expect(name, value, sign="|"):
    EXPECTED[f"{STEP}{sign}{name}"] = np.array(tf.convert_to_tensor(value))


def expect_weights(*variables):
    for variable in variables:
        expect(f"weights/{name_of(variable)}:0", variable)


def expect_gradients(variables, gradients, suffix="", sign="|"):
    for variable, gradient in zip(variables, gradients, strict=True):
        expect(f"gradients/{name_of(variable)}Grad{suffix}", gradient, sign)


def next_step():
    global STEP
    STEP += 1


def show(program, variables, *more):
    text = b"".join(np.asarray(variable.numpy()).tobytes() for variable in variables)
    print(program, hashlib.sha256(text).hexdigest(), *more)


def dense(units=3, inputs=5):
    model = tf.keras.Sequential([layers.Dense(8, activation="tanh"), layers.Dense(units)])
    model.build((None, inputs))
    return model


def batch(rows=16, inputs=5):
    draw = rng.normal(size=(rows, inputs)), rng.normal(size=(rows, 3))
    return tuple(tf.constant(part, tf.float32) for part in draw)


def mse(a, b):
    return tf.reduce_mean((a - b) ** 2)


def train_step(model, optimizer, **options):
    @tf.function(**options)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = mse(model(x), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients

    return step


def main(programs):
    """usage: python FILE EXPECTED.npz PROGRAM..."""
    for program in sys.argv[2:]:
        tf.keras.utils.set_random_seed(3)
        programs[program]()
    np.savez(sys.argv[1], **EXPECTED)
