"""Trains with Keras on JAX; with a folder as argument, watched by a backend that is written here.

It shows what a library that Keras computes with has to bring along: where the step's values are, and nothing else.
"""

import sys

import jax
import keras
import numpy as np

if len(sys.argv) > 1:
    from smd_agent.core.save_config import SaveConfig
    from smd_agent.framework.hook_source import HookSource
    from smd_agent.framework.keras.backend import Backend
    from smd_agent.framework.keras.fit_watch import KerasWatch
    from smd_agent.framework.keras.logs import KerasLogs
    from smd_agent.framework.keras.names import Names, definer
    from smd_agent.framework.keras.saved_step import KerasCapture

    class JaxCapture(KerasCapture):
        def begin(self, arguments):
            # While fit runs, variables have their values in the state that is handed from step to step.
            own = (self.model.trainable_variables, self.model.non_trainable_variables)
            pairs = [pair for several in zip(own, arguments[0], strict=False) for pair in zip(*several, strict=True)]
            state = {id(variable): value for variable, value in pairs}
            found = self.variables.weights(self.model, object())
            self.writer.save_tensors(found.names, [state[id(variable)] for variable in found.variables])

        def finish(self, outputs):
            super().finish(outputs[0])

        def is_tensor(self, value):
            return isinstance(value, jax.Array)

    class JaxBackend(Backend):
        def capture(self, hook, step):
            return JaxCapture(hook, step.model, step.mode, step.variables, object())

    every = SaveConfig(save_interval=1)
    hook = KerasLogs(sys.argv[1], save_config=every, include_collections=["losses", "weights", "biases"])
    hook.follow_calls()
    names = Names(lambda variable: variable.path)
    trainer = definer(keras.Model, "make_train_function")
    KerasWatch(JaxBackend(trainer, keras.callbacks.History, names), HookSource(KerasLogs)).install()

seen = {}


class Watching(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        seen[str(len(seen))] = np.array(self.model.get_weights()[0])


keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
inputs = keras.layers.Input((4,))
model = keras.Model(inputs, keras.layers.Dense(2, name="last")(inputs))
model.compile(keras.optimizers.SGD(0.1), "mse")
x, y = rng.normal(size=(40, 4)).astype("float32"), rng.normal(size=(40, 2)).astype("float32")
given = {"batch_size": 10, "epochs": 2, "verbose": 0, "shuffle": False, "callbacks": [Watching()]}
print(model.fit(x, y, validation_data=(x[:8], y[:8]), **given).history)
print(model.predict(x[:9], verbose=0).sum(), [weight.tobytes().hex() for weight in model.get_weights()])
if len(sys.argv) > 1:
    np.savez(f"{sys.argv[1]}.npz", **seen)
