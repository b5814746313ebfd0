"""A script that makes a KerasHook itself and hands it to fit; prints nothing of its own."""

import sys

import numpy as np
import tensorflow as tf

import smd_agent.tensorflow.keras as smd

hook = smd.KerasHook(
    sys.argv[1],
    save_config=smd.SaveConfig(save_interval=1),
    include_collections=["gradients", "mine", "chosen", "kernels", "optimizer_variables", "sm_metrics"],
    reduction_config=smd.ReductionConfig(reductions=["min", "mean"], abs_norms=["l2"], save_raw_tensor=True),
)
layers = tf.keras.layers
tf.keras.utils.set_random_seed(1)
first = layers.Dense(5, activation="tanh", name="first")
second = layers.Dense(2, name="second")
inputs = layers.Input((4,))
hidden = first(inputs)
model = tf.keras.Model(inputs, second(hidden), name="net")
hook.get_collection("mine").add_keras_layer(second, inputs=True, outputs=True)
hook.get_collection("chosen").add(hidden, first.kernel)
hook.get_collection("sm_metrics").include("mae$")
hook.get_collection("kernels").include("weights/.*kernel:0$")
model.compile(tf.keras.optimizers.SGD(0.5, momentum=0.9), "mse", metrics=["mae"])
rng = np.random.default_rng(2)
x, y = rng.normal(size=(24, 4)).astype("float32"), rng.normal(size=(24, 2)).astype("float32")
# As in the old library's documents; the batches of validation are EVAL all the same.
hook.set_mode(smd.modes.TRAIN)
model.fit(x, y, batch_size=8, epochs=2, verbose=0, shuffle=False, callbacks=[hook], validation_data=(x[:8], y[:8]))
hook.save_scalar("wall", 3.5, sm_metric=True)
np.savez(sys.argv[2], loss=model.evaluate(x, y, verbose=0, batch_size=24, callbacks=[hook])[0])
hook.close()
