"""Updates, settings, and what is known of variables, of sessions of ``tf.compat.v1``, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import smd_agent.tensorflow as smd

v1 = tf.compat.v1
X = np.random.RandomState(0).rand(6, 8, 4).astype("f4")
COLLECTIONS = ["weights", "biases", "updates", "optimizer", "parameters"]


def hooked(out, every=1):
    return smd.SessionHook(out, save_config=smd.SaveConfig(save_interval=every), include_collections=COLLECTIONS)


def train(hook, make, steps=6):
    """Train in a session; the variables before each run and after the last one, by name."""
    with tf.Graph().as_default():
        v1.set_random_seed(4)
        x = v1.placeholder(tf.float32, [None, 4], "x")
        fetched = make(x)
        variables = {variable.name: variable for variable in v1.trainable_variables()}
        seen = []
        with v1.train.MonitoredSession(hooks=[hook] if hook else []) as session:
            for rows in X[:steps]:
                seen.append(session.run_step_fn(lambda step_context: step_context.session.run(variables)))
                session.run(fetched, {x: rows})
            seen.append(session.run_step_fn(lambda step_context: step_context.session.run(variables)))
    if hook:
        hook.close()
    return seen


def own_loss(x):
    kernel = v1.get_variable("layer/kernel", [4, 3])
    bias = v1.get_variable("bias", [3], initializer=tf.zeros_initializer())
    return tf.reduce_mean((x @ kernel + bias - 1) ** 2)


def with_adam(x):
    rate = v1.train.exponential_decay(0.1, v1.train.get_or_create_global_step(), 1, 0.5)
    return v1.train.AdamOptimizer(rate, beta1=0.8).minimize(own_loss(x), v1.train.get_or_create_global_step())


def values(trial, name):
    return [trial.tensor(name).value(step) for step in trial.tensor(name).steps()]


@pytest.mark.parametrize("every", [1, 2])
def test_updates_are_what_the_run_has_changed(out, every):
    seen = train(hooked(out, every), with_adam)
    trial = smd.create_trial(out)
    assert trial.tensor_names(collection="updates") == sorted(
        f"{what}/{name}" for what in ("update", "update_ratio") for name in ("layer/kernel", "bias")
    )
    for name in ("layer/kernel", "bias"):
        assert trial.tensor(f"update/{name}").steps() == [*range(0, 6, every)]
        for step in range(0, 6, every):
            before, after = (seen[number][f"{name}:0"].astype("f8") for number in (step, step + 1))
            move, length = np.linalg.norm(after - before), np.linalg.norm(before)
            assert trial.tensor(f"update/{name}").value(step) == pytest.approx(move, rel=1e-5)
            ratio = move / length if length else 1.0
            assert trial.tensor(f"update_ratio/{name}").value(step) == pytest.approx(ratio, rel=1e-5)
            np.testing.assert_array_equal(trial.tensor(f"{name}:0").value(step), seen[step][f"{name}:0"])


def test_settings_are_those_that_the_update_used(out):
    train(hooked(out), with_adam)
    trial = smd.create_trial(out)
    (rate,) = trial.tensor_names(regex="^optimizer/AdamOptimizer.*/lr$")
    assert values(trial, rate) == pytest.approx([0.1 * 0.5**step for step in range(6)])
    for name, expected in (("beta_1", 0.8), ("beta_2", 0.999), ("eps", 1e-8)):
        assert values(trial, rate.replace("/lr", f"/{name}")) == pytest.approx([expected] * 6)


def test_each_variable_is_trained_forgotten_or_not_reached(out):
    def make(x):
        loss = own_loss(x)
        v1.get_variable("unused", [2])
        forgotten = v1.get_variable("forgotten", [2])
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        pairs = optimizer.compute_gradients(loss + tf.reduce_sum(forgotten))
        return optimizer.apply_gradients([pair for pair in pairs if "forgotten" not in pair[1].name])

    seen = train(hooked(out), make)
    trial = smd.create_trial(out)
    assert trial.tensor("parameters/variables").steps() == [0]
    told = json.loads(str(trial.tensor("parameters/variables").value(0)[0]))
    title = told["bias"]["optimizer"]
    assert title.startswith("MomentumOptimizer")
    fact = {"requires_grad": True, "optimizer": title, "gradient": True}
    assert told == {
        "layer/kernel": fact,
        "bias": fact,
        "unused": {**fact, "gradient": False},
        "forgotten": {**fact, "optimizer": None},
    }
    (momentum,) = trial.tensor_names(regex="^optimizer/.*/momentum$")
    assert values(trial, momentum) == pytest.approx([0.9] * 6)
    assert values(trial, "update/unused") == [0] * 6
    assert not trial.tensor_names(regex="^update/forgotten")
    np.testing.assert_array_equal(seen[0]["forgotten:0"], seen[-1]["forgotten:0"])


def test_two_optimizers_that_take_turns(out):
    def make(x):
        judged, made = own_loss(x), tf.reduce_mean(v1.get_variable("made", [3]) ** 2)
        first = v1.train.GradientDescentOptimizer(0.5).minimize(judged, var_list=v1.trainable_variables("layer"))
        second = v1.train.GradientDescentOptimizer(0.25).minimize(made)
        return [first, second]

    train(hooked(out), make)
    trial = smd.create_trial(out)
    rates = sorted(values(trial, name)[0] for name in trial.tensor_names(regex="^optimizer/.*/lr$"))
    assert rates == [0.25, 0.5]
    told = json.loads(str(trial.tensor("parameters/variables").value(0)[0]))
    assert len({fact["optimizer"] for fact in told.values()} - {None}) == 2


def test_a_training_is_the_same_bit_for_bit(out):
    plain, ours = (train(hook, with_adam) for hook in (None, hooked(out, 2)))
    for one, other in zip(plain, ours, strict=True):
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])


def test_nothing_is_saved_unasked_nor_of_an_evaluation(out):
    hook = smd.SessionHook(out, include_collections=["weights"], save_config=smd.SaveConfig(save_interval=1))
    train(hook, with_adam)
    assert smd.create_trial(out).tensor_names(regex="^(update|optimizer/|parameters)") == []
    hook = hooked(f"{out}-evaluated")
    train(hook, own_loss)
    assert smd.create_trial(f"{out}-evaluated").tensor_names(regex="^(update|optimizer/|parameters)") == []
