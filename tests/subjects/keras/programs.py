"""Trains with Keras in the ways that are named as arguments; knows nothing of the agent.

Prints way by way a hash of each model's weights, what fit returned and when Python code of a model ran; writes what its
own callback saw, and how many functions TensorFlow has traced, to the file named first.
"""

import hashlib
import sys

import numpy as np

if "keras" in sys.argv:
    import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import transform
from watching import watching

if "mirrored" in sys.argv:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
if "tf_keras" in sys.argv:
    import tf_keras as keras
elif "keras" not in sys.argv:
    keras = tf.keras
layers = keras.layers
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6)).astype("float32")
IMAGES = rng.normal(size=(72, 8, 8, 2)).astype("float32")
WORDS = rng.integers(0, 9, (80, 5))
Y = rng.integers(0, 3, 80)
seen = {}
kept = []
traces = []
transform.CONCRETE_FUNCTION_CALLBACKS.append(lambda function: traces.append(function.name))


def path(variable):
    return getattr(variable, "path", variable.name.split(":")[0])


Watching = watching(keras, seen, path, lambda variable: variable.numpy())


def apply(optimizer, tape, loss, variables):
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def sgd(rate=1.0, **more):
    return keras.optimizers.SGD(rate, **more)


def crossentropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense(name, *between, kind=None):
    inputs = layers.Input((6,))
    x = layers.Dense(8, activation="relu", name=f"{name}_a")(inputs)
    for layer in between:
        x = layer(x)
    return (kind or keras.Model)(inputs, layers.Dense(3, name=f"{name}_b")(x), name=name)


def images(name):
    inputs = layers.Input((8, 8, 2))
    x = layers.Conv2D(4, 3, name=f"{name}_conv", activation="relu")(inputs)
    x = layers.BatchNormalization(name=f"{name}_bn")(x)
    x = layers.Flatten(name=f"{name}_flat")(layers.Dropout(0.3, name=f"{name}_drop")(x))
    x = layers.LayerNormalization(name=f"{name}_ln")(layers.Dense(16, activation="gelu", name=f"{name}_a")(x))
    return keras.Model(inputs, layers.Dense(3, name=f"{name}_b")(x), name=name)


def tell(name, model, *more):
    variables = b"".join(np.asarray(variable).tobytes() for variable in model.variables)
    print(name, hashlib.sha1(variables).hexdigest(), *more)
    kept.append(model)


def fit(name, model, optimizer=None, x=X, y=Y, epochs=2, **more):
    model.compile(optimizer or sgd(), crossentropy(), metrics=["accuracy"], **more)
    log = model.fit(x, y, batch_size=16, epochs=epochs, verbose=0, shuffle=False, callbacks=[Watching(name)])
    tell(name, model, log.history)


def whole(name, **more):
    """Everything that a model can be told to do."""
    model = images(name)
    model.compile(sgd(), crossentropy(), metrics=["accuracy"], **more)
    given = (IMAGES, Y[:72])
    held_out = (IMAGES[:20], Y[:20])
    log = model.fit(*given, 16, 2, verbose=0, shuffle=False, callbacks=[Watching(name)], validation_data=held_out)
    found = model.evaluate(*given, verbose=0), model.predict(IMAGES, verbose=0).sum()
    batches = model.train_on_batch(IMAGES[:7], Y[:7]), model.test_on_batch(IMAGES[:7], Y[:7])
    tell(name, model, log.history, found, batches, model.predict_on_batch(IMAGES[:3]).sum())


def plain():
    whole("plain")


def jit():
    whole("jit", jit_compile=True)


def eager():
    whole("eager", run_eagerly=True)


class Noise(layers.Layer):
    def call(self, x, training=None):
        return tf.nn.dropout(x + tf.random.normal(tf.shape(x)) * 0.1, 0.2) if training else x


def noise():
    fit("noise", dense("noise", Noise(name="noise_layer")))


def words(name, **more):
    model = [
        layers.Embedding(9, 4, name=f"{name}_e"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(3, name=f"{name}_d"),
    ]
    fit(name, keras.Sequential(model, name=name), x=WORDS, **more)


def rows():
    words("rows")


def rows_jit():
    words("rowsjit", jit_compile=True)


def rows_eager():
    words("rowseager", run_eagerly=True)


def adam():
    fit("adam", dense("adam"), keras.optimizers.Adam(0.01))


def clipped():
    fit("clipped", dense("clipped"), sgd(clipnorm=0.05))


def accumulated():
    fit("accumulated", dense("accumulated"), sgd(gradient_accumulation_steps=2))


def twins():
    for _ in range(2):
        keras.backend.clear_session()
        fit("twins", dense("twins"))


def mixed():
    keras.mixed_precision.set_global_policy("mixed_float16")
    fit("mixed", dense("mixed"), sgd(0.125))
    keras.mixed_precision.set_global_policy("float32")


class Counted(keras.Model):
    """Tells how often its Python code runs."""

    def train_step(self, data):
        print(self.name, "train_step")
        return super().train_step(data)

    def test_step(self, data):
        print(self.name, "test_step")
        return super().test_step(data)


def traced():
    fit("traced", dense("traced", kind=Counted))
    function = kept[-1].train_function
    print(function.__name__, getattr(function, "experimental_get_tracing_count", int)())
    kept[-1].evaluate(X, Y, verbose=0)
    fit("tracedjit", dense("tracedjit", kind=Counted), jit_compile=True)


def windows():
    fit("windows", dense("windows", kind=Counted), steps_per_execution=3)


def windows_drawn():
    fit("drawn", dense("drawn", layers.Dropout(0.5)), steps_per_execution=3)


def windows_jit():
    fit("windowsjit", dense("windowsjit", kind=Counted), steps_per_execution=3, jit_compile=True)


def unknown_length():
    def batches():
        return ((X[k : k + 16], Y[k : k + 16]) for k in range(0, 80, 16))

    signature = (tf.TensorSpec((None, 6)), tf.TensorSpec((None,), tf.int64))
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    model = dense("unknown")
    model.compile(sgd(), crossentropy())
    tell("unknown", model, model.fit(data, epochs=2, verbose=0, validation_data=data).history)


class Gan(keras.Model):
    def __init__(self):
        super().__init__(name="gan")
        self.maker = keras.Sequential([layers.Input((4,)), layers.Dense(6, name="made")], name="maker")
        self.judge = keras.Sequential([layers.Input((6,)), layers.Dense(1, name="judged")], name="judge")

    def compile(self, **more):
        super().compile(**more)
        self.makers, self.judges = sgd(), sgd()

    def train_step(self, data):
        made = tf.random.stateless_normal((tf.shape(data)[0], 4), (1, 2))
        with tf.GradientTape() as tape:
            judged = tf.reduce_mean((self.judge(data) - 1) ** 2) + tf.reduce_mean(self.judge(self.maker(made)) ** 2)
        self.update(self.judges, tape, judged, self.judge)
        with tf.GradientTape() as tape:
            believed = tf.reduce_mean((self.judge(self.maker(made)) - 1) ** 2)
        self.update(self.makers, tape, believed, self.maker)
        return {"judge_loss": judged, "maker_loss": believed}

    def update(self, optimizer, tape, loss, model):
        variables = model.trainable_variables
        apply(optimizer, tape, loss, variables)


def gan():
    model = Gan()
    model.compile()
    tell("gan", model, model.fit(X, batch_size=16, epochs=2, verbose=0).history)


class Silent(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        apply(self.optimizer, tape, loss, self.trainable_variables)
        # Keras 3 takes no empty dict.
        return {"loss": loss} if hasattr(keras, "ops") else {}


class Looping(keras.Model):
    def train_step(self, data):
        x, y = data

        def once(number, _):
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            apply(self.optimizer, tape, loss, self.trainable_variables)
            return number + 1, loss

        return {"loss": tf.while_loop(lambda number, _: number < 2, once, (0, 0.0))[1]}


def quiet(name, kind):
    model = dense(name, kind=kind)
    model.compile(sgd(), crossentropy())
    tell(name, model, model.fit(X, Y, batch_size=16, epochs=2, verbose=0, shuffle=False).history)


def silent():
    quiet("silent", Silent)


def loop():
    quiet("loop", Looping)


def mirrored():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = dense("mirrored")
        model.compile(sgd(), crossentropy(), metrics=["accuracy"])
    log = model.fit(X, Y, batch_size=16, epochs=2, verbose=0, shuffle=False)
    tell("mirrored", model, log.history)


def legacy():
    fit("legacy", dense("legacy"), keras.optimizers.legacy.SGD(1.0))


def keras_package():
    fit("package", dense("package"))


class Doubled(layers.Layer):
    def __init__(self, name):
        super().__init__(name=name)
        self.inner = layers.Dense(5, name=f"{name}_inner")

    def call(self, x):
        return self.inner(x) * 2


class Own(keras.Model):
    def __init__(self, name):
        super().__init__(name=name)
        self.first = Doubled(f"{name}_first")
        self.last = layers.Dense(3, name=f"{name}_last")

    def call(self, x, training=False):
        return self.last(tf.nn.relu(self.first(x)) if training else self.first(x))


def subclassed():
    fit("subclassed", Own("subclassed"))


def several():
    """Two models, trained and evaluated in turn."""
    models = [dense("severalone"), Own("severaltwo")]
    for model in models:
        model.compile(sgd(), crossentropy())
    for _ in range(2):
        for model in models:
            model.fit(X, Y, batch_size=40, verbose=0, shuffle=False)
            model.evaluate(X, Y, batch_size=80, verbose=0)
    for model in models:
        tell("several", model)


for word in sys.argv[2:]:
    if word not in ("keras", "tf_keras"):
        keras.utils.set_random_seed(3)
        traces.clear()
        print("way", word)
        globals()[word]()
        seen[f"traces|{word}"] = np.array(len(traces))
np.savez(sys.argv[1], **seen)
