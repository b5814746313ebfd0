"""A loop with a GradientTape that the script wraps, as for the old library: python keras_tape.py OUT_DIR."""

import sys

import numpy as np
import smdebug.tensorflow as smd
import tensorflow as tf
from smdebug.core.collection import CollectionKeys


def main(out_dir):
    tf.keras.utils.set_random_seed(5)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3, name="last")])
    hook = smd.KerasHook(
        out_dir,
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=[CollectionKeys.WEIGHTS, CollectionKeys.GRADIENTS, CollectionKeys.LOSSES],
    )
    optimizer = hook.wrap_optimizer(tf.keras.optimizers.SGD(0.1))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 4)).astype("float32"), rng.normal(size=(24, 3)).astype("float32")
    hook.set_mode(smd.modes.TRAIN)
    for start in range(0, 24, 4):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((model(x[start : start + 4]) - y[start : start + 4]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        hook.save_tensor("row", tf.constant(x[start]), collections_to_write="default")
        hook.save_scalar("start", start)
    hook.close()
    print(float(loss))


if __name__ == "__main__":
    main(sys.argv[1])
