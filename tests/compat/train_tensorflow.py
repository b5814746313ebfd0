"""Runs with our TensorFlow hooks, for the original library to read; each kind in a process of its own.

usage: python train_tensorflow.py KIND OUT_DIR
"""

import sys

import numpy as np
import tensorflow as tf

import smd_agent.tensorflow as smd

v1 = tf.compat.v1
SAVED = ["weights", "gradients", "optimizer_variables"]
rng = np.random.default_rng(0)


def tape(out_dir, **options):
    hook = smd.KerasHook(out_dir, save_config=smd.SaveConfig(save_interval=2), save_all=True, **options)
    kernel = tf.Variable(rng.normal(size=(5, 3)), name="dense/kernel", dtype=tf.float32)
    bias = tf.Variable(tf.zeros([3], tf.bfloat16), name="dense/bias")

    @tf.function
    def step(x):
        with hook.wrap_tape(tf.GradientTape()) as recorded:
            loss = tf.reduce_mean(tf.tanh(x @ kernel + tf.cast(bias, tf.float32)) ** 2)
        for variable, gradient in zip((kernel, bias), recorded.gradient(loss, [kernel, bias]), strict=True):
            variable.assign_sub(gradient)

    for mode, count in ((smd.modes.TRAIN, 5), (smd.modes.EVAL, 3)):
        hook.set_mode(mode)
        for number in range(count):
            step(tf.constant(rng.normal(size=(8, 5)), tf.float32))
            hook.save_scalar("number", number)
    hook.close()


def session(out_dir, **options):
    hook = smd.SessionHook(out_dir, save_config=smd.SaveConfig(save_interval=2), include_collections=SAVED, **options)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 5], "x")
        w = v1.get_variable("layer/w", [5, 3])
        loss = v1.losses.mean_squared_error(x[:, :3], tf.nn.embedding_lookup(w, [0, 1, 1]) @ w[:3] + x @ w)
        update = v1.train.AdamOptimizer(0.1).minimize(loss)
        with v1.train.MonitoredSession(hooks=[hook]) as running:
            for _ in range(5):
                running.run(update, {x: rng.normal(size=(3, 5))})
    hook.close()


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    reductions = {"reduction_config": smd.ReductionConfig(["min", "mean", "std"], norms=["l2"])}
    train = tape if kind.startswith("tape") else session
    train(folder, **(reductions if kind.endswith("reduced") else {}))
