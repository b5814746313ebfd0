"""Running trainings of Keras and of tapes, which save more, a step whole, or stop when ``tap`` asks for it."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from harness.tapped import TappedRun

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

TRAIN = ModeKeys.TRAIN
DATA = """
import time, numpy, tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(2)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x, y = numpy.random.normal(size=(4000, 8)).astype("float32"), numpy.random.randint(0, 2, 4000)
"""
FIT = f"""{DATA}
class Slow(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.batches = getattr(self, "batches", 0) + 1
        time.sleep(0.01)

slow = Slow()
model.compile("sgd", loss)
model.fit(x, y, batch_size=4, epochs=100, verbose=0, callbacks=[slow])
print("trained", slow.batches)
"""
LOOP = f"""{DATA}
optimizer = tf.keras.optimizers.SGD(0.1)
try:
    for step in range(100000):
        before = [one.numpy() for one in model.trainable_variables]
        with tf.GradientTape() as tape:
            value = loss(y[:4], model(x[:4], training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        try:
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        except Exception:
            print("swallowed")
        time.sleep(0.01)
finally:
    print("finally", step, all((a == b.numpy()).all() for a, b in zip(before, model.trainable_variables)))
"""
COMPILED = f"""{DATA}
optimizer = tf.keras.optimizers.SGD(0.1)

@tf.function
def train(inputs, labels):
    with tf.GradientTape() as tape:
        value = loss(labels, model(inputs, training=True))
    gradients = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return value

try:
    for step in range(100000):
        before = [one.numpy() for one in model.trainable_variables]
        train(x[:4], y[:4])
        time.sleep(0.01)
finally:
    print("finally", step, all((a == b.numpy()).all() for a, b in zip(before, model.trainable_variables)))
"""


def test_fit_obeys(tmp_path):
    with TappedRun(tmp_path, FIT) as run:
        code, said = run.tap("--collection", "outputs", "--collection", "gradients", "--steps", "3")
        outputs = run.answers()[0]
        assert (code, said) == (0, f"worker_0: {outputs['text']}\n")
        assert run.tap("--collection", "layers", "--steps", "2")[0] == 0
        assert run.tap("--dump")[0] == 0
        code, said = run.tap("--stop", "enough")
        assert code == 0
        assert run.ended() == 0
    trial = create_trial(str(run.run))
    layers, whole, stopped = (answer["step"] for answer in run.answers()[1:])
    asked = [*range(outputs["step"], outputs["step"] + 3)]
    name = "predictions"
    assert trial.tensor_names(collection="outputs") == ["labels", name]
    assert trial.tensor(name).steps(TRAIN) == [*asked, whole]
    assert trial.tensor(name).value(asked[0], TRAIN).shape == (4, 2)
    (first, *_) = trial.tensor_names(regex="dense/outputs")
    assert trial.tensor(first).steps(TRAIN) == [layers, layers + 1, whole]
    assert trial.tensor_names(step=whole, mode=TRAIN, collection="weights")
    assert said == f"worker_0: obeyed: Keras ends the training after step {stopped}\n"
    assert run.printed == f"trained {stopped + 1}\n"
    assert f"smd_agent: stopped after step {stopped}: enough (asked by tap)\n" in run.said


@pytest.mark.parametrize("script", [LOOP, COMPILED], ids=["eager", "compiled"])
def test_a_tape_obeys(tmp_path, script):
    with TappedRun(tmp_path, script) as run:
        code, said = run.tap("--collection", "gradients", "--steps", "3")
        assert code == 0, said
        assert run.tap("--dump")[0] == 0
        assert run.tap("--stop", "enough")[0] == 0
        assert run.ended() == 86
    trial = create_trial(str(run.run))
    gradients, whole, stopped = (answer["step"] for answer in run.answers())
    (name, *_) = trial.tensor_names(collection="gradients")
    mode = TRAIN if trial.steps(TRAIN) else ModeKeys.GLOBAL
    assert trial.tensor(name).steps(mode) == [*range(gradients, gradients + 3), whole]
    assert trial.tensor_names(step=whole, mode=mode, collection="weights")
    assert run.printed == f"finally {stopped} True\n"
    assert f"smd_agent: stopped at step {stopped}: enough (asked by tap)\n" in run.said
