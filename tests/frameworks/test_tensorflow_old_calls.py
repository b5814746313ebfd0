"""What scripts for smdebug call of its TensorFlow hooks beside the common names saves what it saved."""

from __future__ import annotations

import gc

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from harness.sagemaker_metrics import metric_values

import smd_agent.tensorflow as smd

# Keras 2.15 draws seeds in a way that Python warns of.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

WANTED = ["gradients", "inputs", "outputs", "layers", "optimizer_variables"]


def firsts(trial, name):
    """First elements of a tensor by step."""
    tensor = trial.tensor(name)
    return {step: np.ravel(tensor.value(step))[0].item() for step in tensor.steps()}


@pytest.fixture
def every_second(out):
    return smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=WANTED)


def test_a_loop_that_tells_its_hook_what_it_computes(every_second, out, capsys):
    hook = every_second
    w, momentum = tf.Variable(tf.ones([4, 2]), name="w"), tf.Variable(3.0, name="momentum")
    hook.set_optimizer_variables([momentum])
    hook.add_to_collection("mine", [w])
    hook.add_to_collection("mine", {"an eager tensor": tf.ones(3)})
    asked = []
    for i in range(5):
        x = tf.fill([8, 4], float(i))
        with hook.wrap_tape(tf.GradientTape()) as tape:
            y = x @ w
            hook.save_tape_logs(model_inputs=[x, 2 * x], outputs=y)
            loss = tf.reduce_mean(y**2)
        hook.set_gradients(gradients=tape.gradient(loss, [w]))
        hook.save_smdebug_logs(
            {
                "smdebug_y": x,
                "smdebug_gradients": [(w, tf.fill([4, 2], i + 0.5)), ("given:0", x), (b"none", None)],
                "smdebug_layer_outputs": [(tf.constant("first"), [x], [y, y]), (b"second", [x, x], y)],
                "loss": 7.0,
            }
        )
        hook.record_tensor_value("accuracy", tf.constant(float(i)))
        momentum.assign_add(1.0)
        asked.append(
            (
                hook.should_save_layer("first"),
                hook.should_save_tensor_or_collection("w", "gradients"),
                hook.should_save_tensor_or_collection("whatever", "metrics"),
                hook.should_save_tensor_or_collection("whatever", "mine"),
            )
        )
    hook._cleanup()
    trial = smd.create_trial(out)
    assert asked == [(True, True, True, False), (False,) * 4] * 2 + asked[:1]
    even = {0: 0, 2: 2, 4: 4}
    told = ("inputs_0", "labels", "gradients/givenGrad", "first/inputs", "second/inputs_0", "second/inputs_1")
    assert {name: firsts(trial, name) for name in (*told, "accuracy")} == dict.fromkeys((*told, "accuracy"), even)
    assert firsts(trial, "gradients/wGrad") == {0: 0.5, 2: 2.5, 4: 4.5}
    assert firsts(trial, "momentum:0") == {0: 3, 2: 5, 4: 7}
    assert firsts(trial, "weights/w:0") == dict.fromkeys(even, 1)
    assert {trial.tensor("second/outputs").value(2).shape} == {trial.tensor("first/outputs_1").value(2).shape}
    assert trial.tensor_names(collection="inputs") == ["inputs_0", "inputs_1"]
    assert trial.tensor_names(collection="outputs") == ["labels", "predictions"]
    assert trial.tensor_names(collection="optimizer_variables") == ["momentum:0"]
    assert trial.tensor_names(collection="mine") == ["weights/w:0"]
    assert trial.tensor_names(collection="metrics") == ["accuracy"]
    assert firsts(trial, "loss")[4] != 7
    assert "dict is not added to mine: neither a variable nor a tensor of a model or graph" in capsys.readouterr().err


def test_a_session_that_is_told_what_to_save(out, capsys):
    v1 = tf.compat.v1
    hook = smd.SessionHook(
        out, save_config=smd.SaveConfig(save_interval=1), include_collections=["gradients", "optimizer_variables"]
    )
    with tf.Graph().as_default():
        w = v1.get_variable("w", [3, 2], initializer=v1.ones_initializer())
        rows = v1.get_variable("rows", [4], initializer=v1.ones_initializer())
        speed = v1.get_variable("speed", [], initializer=v1.ones_initializer(), trainable=False)
        loss = tf.reduce_mean(w**2, name="value") + tf.reduce_sum(tf.gather(rows, [1, 2]))
        gradients = tf.gradients(loss, [w, rows])
        scaled = [gradients[0] * 2.0, tf.IndexedSlices(gradients[1].values * 2.0, gradients[1].indices)]
        hook.set_gradients(scaled)
        turned = tf.negative(gradients[0], name="turned")
        hook.set_gradients(gradients_and_variables=[(turned, w), (None, rows)])
        hook.set_optimizer_variables(speed)
        hook.add_to_collection("operations", {loss.op})
        same = tf.identity(loss, name="same")
        hook.get_collection("losses").add([same])
        update = tf.group(w.assign_sub(0.1 * scaled[0]), speed.assign_add(1.0), scaled[1], turned, same)
        with v1.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(3):
                session.run(update)
    hook._cleanup()
    trial = smd.create_trial(out)
    assert firsts(trial, "speed:0") == {0: 1, 1: 2, 2: 3}
    assert trial.tensor_names(collection="optimizer_variables") == ["speed:0"]
    assert set(trial.tensor_names(collection="gradients")) == {
        "turned:0",
        *(part.name for part in (scaled[0], scaled[1].values)),
    }
    assert trial.tensor_names(collection="operations") == [loss.name]
    assert "same:0" in trial.tensor_names(collection="losses")
    assert firsts(trial, "turned:0")[0] == pytest.approx(-1 / 3)
    assert "not added" not in capsys.readouterr().err


def test_the_hook_is_a_callback_of_each_keras(out):
    class Own(smd.KerasHook):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, self.model is model, self.params["steps"]))

    seen = []
    hook = Own(out, save_config=smd.SaveConfig(end_step=0))
    keras = [tf.keras]
    if tf.keras.__name__ != "tf_keras":
        keras.append(pytest.importorskip("keras"))
    assert all(isinstance(hook, one.callbacks.Callback) for one in keras)
    assert all(issubclass(smd.KerasHook, one.callbacks.Callback) for one in keras)
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8, 4)), np.ones((8, 1)), batch_size=4, epochs=2, verbose=0, callbacks=[hook])
    assert seen == [(0, True, 2), (1, True, 2)]
    # What is registered is not kept.
    hook.register_model(other := tf.keras.layers.Dense(1))
    assert hook.model is other
    del other
    gc.collect()
    assert hook.model is None


def test_losses_metrics_and_chosen_scalars_are_metrics_of_sagemaker(out, tmp_path, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = smd.KerasHook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["weights"])
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    x, y = np.ones((12, 4)), np.ones((12, 1))
    model.fit(x, y, batch_size=4, verbose=0, callbacks=[hook], validation_data=(x[:4], y[:4]))
    hook.save_scalar("shown", 2.5, sm_metric=True)
    hook.save_scalar("own", 3.5)
    hook.close()
    found = metric_values(tmp_path / "metrics")
    assert found.pop("scalar/shown_EVAL") == {0: 2.5}
    trial = smd.create_trial(out)
    names = {*trial.tensor_names(collection="losses"), *trial.tensor_names(collection="metrics")}
    assert names >= {"loss", "val_loss", "batch_loss", "mae", "val_mae"}
    assert {name.rpartition("_")[0] for name in found} == names
    for name, mode, steps in (("loss", smd.modes.TRAIN, [0, 2]), ("val_mae", smd.modes.EVAL, [0])):
        saved = {step: trial.tensor(name).value(step, mode=mode).item() for step in steps}
        assert found[f"{name}_{mode.name}"] == saved


@pytest.mark.parametrize("kind", [smd.KerasHook, smd.SessionHook])
def test_ranks_that_mpirun_has_started_are_workers_of_one_run(out, monkeypatch, kind):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        hook = kind(out, save_config=smd.SaveConfig(save_interval=1), include_workers="all")
        hook.save_scalar("own", int(rank))
        hook.finish(end_marker=rank == "1")
    trial = smd.create_trial(out)
    assert trial.workers() == ["worker_0", "worker_1"]
    assert [trial.tensor("scalar/own").value(0, worker=worker).item() for worker in trial.workers()] == [0, 1]
