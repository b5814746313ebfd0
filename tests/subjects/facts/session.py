"""A session of tf.compat.v1 that trains."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
with tf.Graph().as_default():
    x, y = v1.placeholder(tf.float32, [10, 4]), v1.placeholder(tf.int64, [10])
    kernel = v1.get_variable("kernel", [4, 3])
    loss = v1.losses.sparse_softmax_cross_entropy(y, x @ kernel)
    optimizers = [v1.train.AdamOptimizer(0.01), v1.train.MomentumOptimizer(0.01, 0.9)]
    updates = [optimizer.minimize(loss, v1.train.get_or_create_global_step()) for optimizer in optimizers]
    with v1.train.MonitoredSession() as session:
        for _ in range(4):
            session.run(updates, {x: np.random.rand(10, 4), y: np.arange(10) % 3})
