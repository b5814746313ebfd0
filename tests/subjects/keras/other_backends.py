"""Trains with Keras on another backend than TensorFlow, in the ways that are named; knows nothing of the agent.

Prints way by way a hash of each model's weights and what fit returned; writes what its own callback saw to the file
named first.
"""

import functools
import hashlib
import sys

import keras
import numpy as np
from watching import watching

layers, ops = keras.layers, keras.ops
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6)).astype("float32")
IMAGES = rng.normal(size=(72, 8, 8, 2)).astype("float32")
Y = rng.integers(0, 3, 80)
seen = {}
kept = []


Watching = watching(keras, seen, lambda variable: variable.path, ops.convert_to_numpy)


def sgd(rate=1.0, **more):
    return keras.optimizers.SGD(rate, **more)


def crossentropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def dense(name):
    inputs = layers.Input((6,))
    x = layers.Dropout(0.2, name=f"{name}_drop")(layers.Dense(8, activation="relu", name=f"{name}_a")(inputs))
    return keras.Model(inputs, layers.Dense(3, name=f"{name}_b")(x), name=name)


def tell(name, model, *more):
    variables = b"".join(ops.convert_to_numpy(variable).tobytes() for variable in model.variables)
    print(name, hashlib.sha1(variables).hexdigest(), *more)
    kept.append(model)


def fit(name, model, optimizer=None, **more):
    model.compile(optimizer or sgd(), crossentropy(), metrics=["accuracy"], **more)
    log = model.fit(X, Y, batch_size=16, epochs=2, verbose=0, shuffle=False, callbacks=[Watching(name)])
    tell(name, model, log.history)


def plain():
    inputs = layers.Input((8, 8, 2))
    x = layers.Conv2D(4, 3, name="plain_conv", activation="relu")(inputs)
    x = layers.Flatten(name="plain_flat")(layers.BatchNormalization(name="plain_bn")(x))
    x = layers.Dropout(0.3, name="plain_drop")(layers.Dense(16, activation="gelu", name="plain_a")(x))
    model = keras.Model(inputs, layers.Dense(3, name="plain_b")(x), name="plain")
    model.compile(sgd(), crossentropy(), metrics=["accuracy"])
    given, held_out = (IMAGES, Y[:72]), (IMAGES[:20], Y[:20])
    watching = [Watching("plain")]
    log = model.fit(*given, 16, 2, verbose=0, shuffle=False, callbacks=watching, validation_data=held_out)
    found = model.evaluate(*given, verbose=0), model.predict(IMAGES, verbose=0).sum()
    batches = model.train_on_batch(IMAGES[:7], Y[:7]), model.test_on_batch(IMAGES[:7], Y[:7])
    tell("plain", model, log.history, found, batches, model.predict_on_batch(IMAGES[:3]).sum())


def clipped():
    fit("clipped", dense("clipped"), sgd(clipnorm=0.05))


def accumulated():
    fit("accumulated", dense("accumulated"), sgd(gradient_accumulation_steps=2))


def adam():
    fit("adam", dense("adam"), keras.optimizers.Adam(0.01))


def mixed():
    keras.mixed_precision.set_global_policy("mixed_float16")
    fit("mixed", dense("mixed"), sgd(0.125))
    keras.mixed_precision.set_global_policy("float32")


def sequential():
    model = [layers.Embedding(9, 4, name="seq_e"), layers.GlobalAveragePooling1D(), layers.Dense(3, name="seq_d")]
    model = keras.Sequential(model)
    model.compile(sgd(), crossentropy())
    words = np.random.default_rng(1).integers(0, 9, (80, 5))
    tell("sequential", model, model.fit(words, Y, batch_size=16, epochs=2, verbose=0, shuffle=False).history)


def jit():
    import torch

    # The default takes a minute of a C++ compiler; what Keras and we do is the same.
    torch.compile = functools.partial(torch.compile, backend="eager")
    fit("jit", dense("jit"), jit_compile=True)


class Gan(keras.Model):
    """Two optimizers in a train_step of its own."""

    def __init__(self):
        super().__init__(name="gan")
        self.maker = keras.Sequential([layers.Input((4,)), layers.Dense(6, name="made")], name="maker")
        self.judge = keras.Sequential([layers.Input((6,)), layers.Dense(1, name="judged")], name="judge")
        self.makers, self.judges = sgd(0.0625, momentum=0.5), sgd(0.0625)

    def call(self, x):
        return self.judge(x)

    def train_step(self, data):
        import torch

        made = torch.linspace(-1, 1, data.shape[0] * 4).reshape(-1, 4)
        judged = ((self.judge(data) - 1) ** 2).mean() + (self.judge(self.maker(made).detach()) ** 2).mean()
        self.update(self.judges, judged, self.judge)
        believed = ((self.judge(self.maker(made)) - 1) ** 2).mean()
        self.update(self.makers, believed, self.maker)
        return {"judge_loss": judged.detach(), "maker_loss": believed.detach()}

    def update(self, optimizer, loss, model):
        import torch

        self.zero_grad()
        loss.backward()
        variables = model.trainable_variables
        with torch.no_grad():
            optimizer.apply([variable.value.grad for variable in variables], variables)


def gan():
    model = Gan()
    model.compile()
    tell("gan", model, model.fit(X, batch_size=16, epochs=2, verbose=0, shuffle=False).history)


def own_loop():
    """Training without fit, by an optimizer of PyTorch."""
    import torch

    model = dense("own")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for start in range(0, 80, 16):
        optimizer.zero_grad()
        scores = model(torch.tensor(X[start : start + 16]), training=True)
        torch.nn.functional.cross_entropy(scores, torch.tensor(Y[start : start + 16])).backward()
        optimizer.step()
    tell("own", model)


def asked():
    model = dense("asked")
    print(model.predict(X, verbose=0).sum() != 0)
    tell("asked", model)


for word in sys.argv[2:]:
    keras.utils.set_random_seed(3)
    print("way", word)
    globals()[word]()
np.savez(sys.argv[1], **seen)
