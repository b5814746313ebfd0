"""Values that a TensorFlow script gives by hand land in the iteration in which they were given."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

# Keras 2.15 draws seeds in a way that Python warns of.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")


def values(trial, name):
    tensor = trial.tensor(name)
    return {step: np.ravel(tensor.value(step))[0].item() for step in tensor.steps()}


def test_every_place_of_a_loop_with_a_tape(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["outputs", "gradients"])
    w = tf.Variable(tf.ones([4, 2]), name="w")
    bias = tf.Variable(tf.ones([2]), name="bias")
    optimizer = hook.wrap_optimizer(tf.keras.optimizers.SGD(0.1))
    hook.save_tensor("before", np.full(2, 7.0))
    for i in range(6):
        hook.save_tensor("top", tf.fill([2], float(i)))
        hook.save_scalar("rate", i)
        with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
            loss = tf.reduce_mean((tf.ones([8, 4]) @ w + bias) ** 2)
        # As the old library's documentation has it.
        hook.save_tensor("y_labels", tf.constant(np.full(3, i)), "outputs")
        grads = tape.gradient(loss, [w, bias])
        hook.save_tensor("grads", grads, "gradients")
        optimizer.apply_gradients(zip(grads, [w, bias], strict=True))
        hook.save_tensor(tensor_name="accuracy", tensor_value=tf.constant(float(i)), collections_to_write="default")
        hook.save_scalar("accuracy", i)
    hook.save_tensor("after", np.full(2, 8.0))
    hook.close()
    trial = smd.create_trial(out)
    for name in ("top", "y_labels", "accuracy"):
        assert values(trial, name) == {0: 0, 2: 2, 4: 4}, name
    for name in ("scalar/rate", "scalar/accuracy"):
        assert values(trial, name) == {number: number for number in range(6)}, name
    assert values(trial, "before") == {0: 7}
    assert values(trial, "after") == {5: 8}
    for i, shape in enumerate([(4, 2), (2,)]):
        assert trial.tensor(f"grads_{i}").value(4).shape == shape
        assert f"grads_{i}" in trial.tensor_names(collection="gradients")


def test_every_place_of_a_loop_with_a_session(out):
    v1 = tf.compat.v1
    hook = smd.SessionHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["gradients"])
    hook.save_tensor("before", np.full(2, 7.0))
    with tf.Graph().as_default():
        w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
        update = hook.wrap_optimizer(v1.train.GradientDescentOptimizer(0.01)).minimize(tf.reduce_mean(w**2))
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            for i in range(5):
                hook.save_tensor("top", np.full(2, i))
                hook.save_scalar("rate", i)
                session.run(update)
                hook.save_tensor("bottom", np.full(2, i))
    hook.close()
    trial = smd.create_trial(out)
    assert values(trial, "before") == {0: 7}
    assert values(trial, "top") == values(trial, "bottom") == {0: 0, 2: 2, 4: 4}
    assert values(trial, "scalar/rate") == {number: number for number in range(5)}


def test_around_and_in_fit(out):
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["gradients"])

    class Own(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            hook.save_tensor("inside", np.full(2, batch))
            hook.save_tensor("early", np.full(2, batch))

    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    hook.save_tensor("before", np.full(2, 7.0))
    hook.save_tensor("early", np.full(2, 8.0))
    model.fit(np.ones((16, 4)), np.ones((16, 1)), batch_size=4, verbose=0, callbacks=[Own(), hook])
    hook.save_tensor("after", np.full(2, 9.0))
    hook.close()
    trial = smd.create_trial(out)
    found = {}
    for name in ("before", "inside", "early", "after"):
        tensor = trial.tensor(name)
        found[name] = {
            (mode.name, step): tensor.value(step, mode=mode)[0]
            for mode in trial.modes()
            for step in tensor.steps(mode=mode)
        }
    print(found)
    assert list(found["before"].values()) == [7]
    assert list(found["after"].values()) == [9]
    assert found["inside"] == found["early"] == {("TRAIN", 0): 0, ("TRAIN", 2): 2}
