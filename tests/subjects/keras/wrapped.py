"""Trains with Keras while a profiler counts the calls of functions of the frameworks.

The first argument names a file with dotted names of those functions, a line each. They are wrapped before a training,
and again by a layer while a step of it runs, and unwrapped between two later steps: with functools.wraps and without,
and the wrappers that were put on first are taken off first or last. If the second argument is ``scout``, nothing is
wrapped, and the file is written instead: of all that the agent has replaced at those times.

TensorFlow does so with compiled steps and with eager ones. Prints counts, what fit returned and a hash of the weights.
"""

import functools
import hashlib
import importlib
import itertools
import sys
from collections import Counter

import keras
import numpy as np

layers = keras.layers
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6)).astype("float32")
Y = rng.integers(0, 3, 60)
TORCH = keras.backend.backend() == "torch"
kept = []


def owner_of(dotted):
    """Find the module or class that a function belongs to."""
    words = dotted.split(".")
    for length in range(len(words) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(words[:length]))
        except ImportError:
            continue
        for word in words[length:-1]:
            owner = getattr(owner, word)
        return owner, words[-1]
    raise LookupError(dotted)


class Profiler:
    def __init__(self, eager, alike, first_first):
        self.eager = eager
        self.alike = alike
        self.first_first = first_first
        self.counts = Counter()
        self.worn = []
        self.calls = 0

    def start(self, mark):
        if "scout" in sys.argv:
            from smd_agent.framework.replaced_functions import replaced

            with open(sys.argv[1], "a") as file:
                file.writelines(f"{entry.path}\n" for entry in replaced())
        else:
            with open(sys.argv[1]) as file:
                for dotted in sorted(set(file.read().split())):
                    self.wear(dotted, mark)

    def wear(self, dotted, mark):
        owner, name = owner_of(dotted)
        own, original = vars(owner).get(name), getattr(owner, name)

        def counting(*args, **kwargs):
            self.counts[f"{mark} {dotted}"] += 1
            return original(*args, **kwargs)

        if self.alike:
            counting = functools.wraps(original)(counting)
        is_static = isinstance(own, staticmethod)
        setattr(owner, name, staticmethod(counting) if is_static else counting)
        self.worn.append((owner, name, staticmethod(original) if is_static else original))

    def called(self):
        self.calls += 1
        if self.calls == (3 if self.eager else 1):
            self.start("inside")

    def stop(self):
        while self.worn:
            owner, name, before = self.worn.pop(0 if self.first_first else -1)
            setattr(owner, name, before)


class Profiled(layers.Layer):
    """Starts the profiler once more in the middle of a step."""

    profiler = None

    def call(self, x, training=False):
        called(training)
        return x * 2


def called(training):
    if training:
        Profiled.profiler.called()


if not TORCH:
    import tensorflow as tf

    called = tf.autograph.experimental.do_not_convert(called)


class Between(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 4:
            Profiled.profiler.stop()


def train(eager, alike, first_first):
    profiler = Profiled.profiler = Profiler(eager, alike, first_first)
    keras.utils.set_random_seed(3)
    inputs = layers.Input((6,))
    x = Profiled(name="late")(layers.Dense(8, activation="relu", name="a")(inputs))
    model = keras.Model(inputs, layers.Dense(3, name="b")(x), name="model")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.5), loss, metrics=["accuracy"], run_eagerly=eager)
    profiler.start("before")
    given = {"batch_size": 10, "verbose": 0, "shuffle": False}
    log = model.fit(X, Y, epochs=2, callbacks=[Between()], validation_data=(X[:20], Y[:20]), **given)
    print(log.history, model.evaluate(X, Y, batch_size=20, verbose=0), model.predict(X, verbose=0).sum())
    print(model.train_on_batch(X[:7], Y[:7]), np.array(profiler.calls))
    print(hashlib.sha1(b"".join(np.asarray(weight).tobytes() for weight in model.get_weights())).hexdigest())
    print(sorted(profiler.counts.items()))
    kept.append(model)


for eager, alike, first_first in itertools.product((True,) if TORCH else (False, True), *[(True, False)] * 2):
    train(eager, alike, first_first)
