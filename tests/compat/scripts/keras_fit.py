"""Keras trainings with a hook as callback, as for the old library: python keras_fit.py OUT_DIR."""

import sys

import numpy as np
import smdebug.tensorflow as smd
import tensorflow as tf
from smdebug.tensorflow.keras import KerasHook


def main(out_dir):
    tf.keras.utils.set_random_seed(5)
    layers = tf.keras.layers
    inputs = layers.Input((4,))
    hidden = layers.Dense(6, "relu", name="hidden")
    model = tf.keras.Model(inputs, layers.Dense(2, name="last")(hidden(inputs)))
    hook = KerasHook(
        out_dir=out_dir,
        save_config=smd.SaveConfig(save_interval=3),
        include_collections=["weights", "biases", "hidden_layer"],
    )
    hook.get_collection("hidden_layer").add_keras_layer(hidden, outputs=True)
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 4)).astype("float32"), rng.normal(size=(24, 2)).astype("float32")
    fitted = model.fit(x, y, batch_size=4, epochs=2, verbose=0, validation_data=(x[:8], y[:8]), callbacks=[hook])
    model.evaluate(x, y, batch_size=8, verbose=0, callbacks=[hook])
    model.predict(x, batch_size=8, verbose=0, callbacks=[hook])
    hook.close()
    print(sorted(fitted.history), fitted.history["loss"])


if __name__ == "__main__":
    main(sys.argv[1])
