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


def fit(out_dir, **options):
    hook = smd.KerasHook(out_dir, save_config=smd.SaveConfig(save_interval=2), save_all=True, **options)
    layers = tf.keras.layers
    inputs = layers.Input((5,))
    model = tf.keras.Model(inputs, layers.Dense(3, name="last")(layers.Dense(4, "tanh", name="first")(inputs)))
    model.compile(tf.keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    x, y = (rng.normal(size=(12, columns)).astype("float32") for columns in (5, 3))
    model.fit(x, y, batch_size=4, epochs=2, verbose=0, validation_data=(x[:8], y[:8]), callbacks=[hook])
    model.evaluate(x, y, batch_size=4, verbose=0, callbacks=[hook])
    model.predict(x, batch_size=4, verbose=0, callbacks=[hook])
    hook.save_scalar("number", 2.5, sm_metric=True)
    hook.close()


def estimator(out_dir, **options):
    hook = smd.EstimatorHook(out_dir, save_config=smd.SaveConfig(save_interval=2), include_collections=SAVED, **options)
    x = rng.normal(size=(40, 5)).astype("float32")

    def model_fn(features, labels, mode):
        found = features @ v1.get_variable("layer/w", [5, 3])
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions=found)
        loss = v1.losses.mean_squared_error(labels, found)
        update = v1.train.AdamOptimizer(0.1).minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update)

    def input_fn():
        return tf.data.Dataset.from_tensor_slices((x, x[:, :3])).batch(8)

    model = tf.estimator.Estimator(model_fn, f"{out_dir}_model")
    model.train(input_fn, hooks=[hook])
    model.evaluate(input_fn, hooks=[hook])
    list(model.predict(input_fn, hooks=[hook]))
    hook.close()


if __name__ == "__main__":
    kind, folder = sys.argv[1:]
    reductions = {"reduction_config": smd.ReductionConfig(["min", "mean", "std"], norms=["l2"])}
    train = {"tape": tape, "session": session, "fit": fit, "estimator": estimator}[kind.split()[0]]
    train(folder, **(reductions if kind.endswith("reduced") else {}))
