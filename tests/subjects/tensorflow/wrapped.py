"""Trains while a program's own wrappers lie over functions of TensorFlow, and prints what they counted and the weights.

usage: python wrapped.py REGISTER.json [ATTRIBUTES.json]

A run with the agent writes to the first file what the agent has replaced: owners' modules, their names, attributes. The
second holds the same for a run that wraps them; without it nothing is wrapped.
"""

import functools
import importlib
import itertools
import json
import operator
import sys
import tempfile

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
v1 = tf.compat.v1
counts = {}
rng = np.random.default_rng(0)


def attributes():
    if len(sys.argv) < 3:
        return []
    with open(sys.argv[2]) as file:
        listed = json.load(file)
    return [(operator.attrgetter(owner)(importlib.import_module(module)), name) for module, owner, name in listed]


def cover(owner, name, which, alike):
    original = getattr(owner, name)

    def counted(*args, **kwargs):
        key = f"{which} {owner.__name__}.{name}"
        counts[key] = counts.get(key, 0) + 1
        return original(*args, **kwargs)

    setattr(owner, name, functools.wraps(original)(counted) if alike else counted)
    return functools.partial(setattr, owner, name, original)


def during_wrappers(train, alike, order):
    """Train before, below one and two layers of wrappers, and after each is taken off in this order."""
    train()
    layers = {}
    for which in "ab":
        layers[which] = [cover(owner, name, which, alike) for owner, name in WRAPPED]
        train()
    for which in order:
        for undo in layers[which]:
            undo()
        train()


class Tapes:
    """A model whose loss is scaled, trained by a tape."""

    def __init__(self, wrap):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
        self.model.build((None, 5))
        self.optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
        self.optimizer.build(self.model.trainable_variables)
        self.wrap = wrap

    def train(self):
        # Traced anew each time, under the wrappers that are there then.
        step = self.wrap(self.step)
        for _ in range(2):
            step(tf.constant(rng.normal(size=(4, 5)).astype("f")), tf.constant(rng.normal(size=(4, 3)).astype("f")))
        print([value.tobytes().hex()[:16] for value in self.model.get_weights()])

    def step(self, x, y):
        new = hasattr(self.optimizer, "scale_loss")
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(x) - y) ** 2)
            scaled = self.optimizer.scale_loss(loss) if new else self.optimizer.get_scaled_loss(loss)
        variables = self.model.trainable_variables
        gradients = tape.gradient(scaled, variables)
        if not new:
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))


def session():
    for make in (v1.train.MonitoredSession, v1.train.SingularMonitoredSession):
        with tf.Graph().as_default():
            w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
            x = v1.placeholder(tf.float32, [4, 3])
            optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
            pairs = optimizer.compute_gradients(tf.reduce_mean((x @ w) ** 2))
            update = optimizer.apply_gradients(iter(pairs))
            with make() as run:
                for _ in range(2):
                    run.run(update, {x: rng.normal(size=(4, 3))})
                print(run.run(w).tobytes().hex())


def estimator():
    def model_fn(features, labels, mode):
        w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
        loss = tf.reduce_mean((features @ w - labels) ** 2)
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update)

    rows, labels = rng.normal(size=(2, 4, 3)).astype("f"), rng.normal(size=(2, 4, 2)).astype("f")
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(folder, tf_random_seed=1, save_checkpoints_steps=10)
        trained = tf.estimator.Estimator(model_fn, config=config)
        trained.train(lambda: tf.data.Dataset.from_tensor_slices((rows, labels)))
        print(trained.get_variable_value("w").tobytes().hex())


def register():
    """What the agent of this process has replaced."""
    patching = sys.modules.get("smd_agent.framework.replaced_functions")
    entries = [] if patching is None else patching.replaced()
    return sorted((entry.owner.__module__, entry.owner.__qualname__, entry.name) for entry in entries)


tf.keras.utils.set_random_seed(1)
WRAPPED = attributes()
before = register()
programs = [Tapes(lambda step: step).train, Tapes(tf.function).train, session]
if hasattr(tf, "estimator"):
    programs.append(estimator)
for train, alike, order in itertools.product(programs, (True, False), ("ab", "ba")):
    during_wrappers(train, alike, order)
print(counts)
# Wrappers of the program's are never taken for places that nobody has replaced yet.
after = register()
if after:
    with open(sys.argv[1], "w") as file:
        json.dump({"before": before, "after": after}, file)
