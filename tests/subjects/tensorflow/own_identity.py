"""A session's training whose graph says itself what it is equal to, with hooks that refuse to be compared.

usage: python own_identity.py     prints losses, weights, and how often the graph was hashed and compared
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
CALLS = collections.Counter()


class Graph(tf.Graph):
    def __hash__(self):
        CALLS["hash"] += 1
        return 1

    def __eq__(self, other):
        CALLS["eq"] += 1
        return self is other


class Printing(tf.train.SessionRunHook):
    def __hash__(self):
        CALLS["hash of a hook"] += 1
        return 1

    def __eq__(self, other):
        raise TypeError("it is not compared")

    def before_run(self, context):
        return tf.train.SessionRunArgs(loss)

    def after_run(self, context, values):
        print(repr(float(values.results)))


rows = np.random.default_rng(1).normal(size=(8, 3)).astype("f")
with Graph().as_default():
    tf.set_random_seed(3)
    given = tf.placeholder(tf.float32, (None, 3))
    weights = tf.get_variable("weights", (3, 1))
    loss = tf.reduce_mean((given @ weights - tf.reduce_sum(given, 1, keepdims=True)) ** 2)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_or_create_global_step())
    with tf.train.MonitoredSession(hooks=[Printing()]) as session:
        for _ in range(6):
            session.run(train, {given: rows})
        print(session.run(weights, {given: rows}).tolist())
print(sorted(CALLS.items()))
