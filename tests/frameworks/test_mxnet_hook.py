"""The hook that a script makes itself, and its collections: values against NumPy, with real nets in this process."""

from __future__ import annotations

import gc
import json
import pickle
import weakref

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.sagemaker_metrics import metric_values
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd

EVERY = smd.SaveConfig(save_interval=1)


def make_net(*, hybridize=False, ctx=None):
    mx.random.seed(1)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(5, in_units=6, activation="relu"), nn.Dense(3, in_units=5))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    if hybridize:
        net.hybridize()
    return net


def rows(seed):
    return nd.array(np.random.RandomState(seed).rand(8, 6))


def train(net, steps=2, loss_fn=None, seen=None):
    """Train; ``seen`` gets the weights before each step and the gradients after it."""
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(steps):
        if seen is not None:
            seen.append({name: p.data().asnumpy() for name, p in net.collect_params().items()})
        with autograd.record():
            loss = (loss_fn or gluon.loss.L2Loss(prefix="l2loss0_"))(net(rows(step)), nd.ones((8, 3)))
        loss.backward()
        if seen is not None:
            seen[-1].update((f"gradient/{name}", p.grad().asnumpy()) for name, p in net.collect_params().items())
        trainer.step(8)


@pytest.mark.parametrize("step, steps", [("update", [0, 1, 2]), ("forward", [0, 1, 2, 3, 4, 5])])
def test_a_hook_file_says_whether_an_update_or_each_call_is_a_step(out, tmp_path, step, steps):
    hook_file = tmp_path / "hook.json"
    parameters = {"save_interval": 1, "step": step, "include_collections": "gradients,weights"}
    hook_file.write_text(json.dumps({"LocalPath": str(out), "HookParameters": parameters}))
    hook = smd.Hook.create_from_json_file(str(hook_file))
    net = make_net()
    hook.register_block(net)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for k in range(3):
        with autograd.record():
            loss = (net(rows(k)) - net(rows(k + 1))).square().sum()
        loss.backward()
        trainer.step(8)
    hook.close()
    trial = smd.create_trial(str(out))
    assert trial.steps() == trial.tensor("net_dense0_weight").steps() == steps
    assert trial.tensor("gradient/net_dense0_weight").steps() == steps[len(steps) // 3 - 1 :: len(steps) // 3]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_hook_made_by_hand_saves_in_the_mode_it_is_told(out, hybridize):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights", "biases", "gradients"])
    net, seen = make_net(hybridize=hybridize), []
    hook.register_block(net)
    train(net, 2, seen=seen)
    hook.set_mode(smd.modes.TRAIN)
    train(net, 1, seen=seen)
    hook.set_mode(smd.modes.EVAL)
    net(rows(9))
    hook.close()
    trial = smd.create_trial(out)
    assert [trial.mode(step).name for step in trial.steps()] == ["GLOBAL", "GLOBAL", "TRAIN", "EVAL"]
    assert {*trial.tensor_names()} == {*seen[0], "l2loss0_output_0"}
    for step, values in enumerate(seen):
        for name, value in values.items():
            np.testing.assert_array_equal(trial.tensor(name).value(step), value)
    assert 3 not in trial.tensor("gradient/net_dense0_weight").steps()
    assert 3 in trial.tensor("net_dense0_weight").steps()


def test_a_hook_made_by_hand_waits_for_all_trainers_that_take_turns(out):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["gradients", "losses"])
    maker, judge = nn.Dense(6, in_units=6, prefix="maker_"), nn.Dense(1, in_units=6, prefix="judge_")
    loss_fn = gluon.loss.L2Loss(prefix="l2loss0_")
    for net in (maker, judge):
        net.initialize(mx.init.Xavier())
        hook.register_block(net)
    trainers = [gluon.Trainer(net.collect_params(), "sgd") for net in (maker, judge)]
    for step in range(3):
        for trainer, goal in ((trainers[1], nd.zeros((8, 1))), (trainers[0], nd.ones((8, 1)))):
            with autograd.record():
                loss = loss_fn(judge(maker(rows(step))), goal)
            loss.backward()
            trainer.step(8)
        judge(rows(step))
    hook.close()
    trial = smd.create_trial(out)
    # In one mode an evaluation is told from a training step only by what follows it.
    assert trial.tensor("gradient/maker_weight").steps() == trial.tensor("gradient/judge_weight").steps() == [0, 2, 4]
    assert trial.tensor("l2loss0_output_1").steps() == [0, 2, 4]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_block_and_a_regex_bring_inputs_and_outputs_into_a_collection(out, hybridize):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["mine", "entered"])
    net = make_net(hybridize=hybridize)
    hook.get_collection("mine").add_block_tensors(net[0], inputs=True)
    hook.get_collection("entered").include("^net_dense1_input")
    hook.register_block(net)
    train(net, 1)
    hook.close()
    trial = smd.create_trial(out)
    # The activation of a layer is a block of its own, whose name begins with the layer's.
    assert trial.tensor_names(collection="mine") == ["net_dense0_input_0", "net_dense0_output_0"]
    assert trial.tensor_names(collection="entered") == ["net_dense1_input_0"]
    fresh = make_net()
    expected = np.maximum(rows(0).asnumpy() @ fresh[0].weight.data().asnumpy().T, 0)
    np.testing.assert_array_equal(trial.tensor("net_dense0_input_0").value(0), rows(0).asnumpy())
    np.testing.assert_allclose(trial.tensor("net_dense0_output_0").value(0), expected, atol=1e-6)
    np.testing.assert_allclose(trial.tensor("net_dense1_input_0").value(0), expected, atol=1e-6)


def test_a_file_says_what_is_saved(out, tmp_path, monkeypatch):
    config = {
        "LocalPath": out,
        "HookParameters": {"save_interval": 2, "include_regex": "dense1_output"},
        "CollectionConfigurations": [
            {"CollectionName": "relu", "CollectionParameters": {"include_regex": "relu_output", "save_interval": 1}}
        ],
    }
    file = tmp_path / "hook.json"
    file.write_text(json.dumps(config))
    monkeypatch.delenv("SMDEBUG_CONFIG_FILE_PATH", raising=False)
    assert smd.get_hook(str(tmp_path / "missing.json")) is None
    hook = smd.Hook.create_from_json_file(str(file))
    assert smd.get_hook() is hook
    net = make_net()
    hook.register_block(net)
    train(net, 3)
    hook.close()
    trial = smd.create_trial(out)
    assert trial.tensor_names(collection="relu") == ["net_dense0_relu_output_0"]
    assert trial.tensor("net_dense0_relu_output_0").steps() == [0, 1, 2]
    assert trial.tensor("net_dense1_output_0").steps() == [0, 2]
    assert {*trial.tensor_names()} == {"net_dense0_relu_output_0", "net_dense1_output_0", "l2loss0_output_0"}


def test_stored_reductions_are_what_numpy_computes(out):
    """The old library's hook for MXNet could not store std and variance."""
    ops = ["min", "max", "mean", "std", "variance", "sum"]
    reductions = smd.ReductionConfig(ops, abs_reductions=["mean", "std"], norms=["l1", "l2"])
    hook = smd.Hook(out, save_config=EVERY, reduction_config=reductions, include_collections=["weights", "gradients"])
    net = nn.Dense(3, in_units=6, prefix="net_")
    net.initialize(mx.init.Xavier())
    hook.register_block(net)
    weight = net.weight.data().asnumpy()
    with autograd.record():
        loss = (net(rows(0)) ** 2).sum()
    loss.backward()
    gradient = net.weight.grad().asnumpy()
    hook.close()
    trial = smd.create_trial(out)
    for name, value in (("net_weight", weight), ("gradient/net_weight", gradient)):
        exact = value.astype(np.float64)
        expected = {op: getattr(np, {"variance": "var"}.get(op, op))(exact) for op in ops}
        expected |= {"abs_mean": np.abs(exact).mean(), "abs_std": np.abs(exact).std()}
        expected |= {"l1": np.abs(exact).sum(), "l2": np.sqrt((exact**2).sum())}
        for op, number in expected.items():
            absolute, _, plain = op.rpartition("_")
            found = trial.tensor(name).reduction_value(0, plain, abs=bool(absolute))
            assert found == pytest.approx(number, rel=1e-6), (name, op)
        with pytest.raises(Exception, match="reductions"):
            trial.tensor(name).value(0)


def test_what_a_script_saves_itself(out):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["seen"])
    hook.get_collection("seen").include("^thing_output")
    net = make_net()
    hook.register_block(net)
    net(rows(0))
    hook.save_scalar("rate", 0.25)
    hook.save_tensor("whole", nd.array([[1, 2], [3, 4]]))
    hook.record_tensor_value("thing", nd.array([5, 6]))
    hook.record_tensor_value("thing", nd.array([7]))
    with pytest.raises(AssertionError, match="NDArray"):
        hook.record_tensor_value("thing", [1])
    hook.close()
    trial = smd.create_trial(out)
    assert trial.tensor("scalar/rate").value(0) == 0.25
    np.testing.assert_array_equal(trial.tensor("whole").value(0), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(trial.tensor("thing_output_0").value(0), [5, 6])
    np.testing.assert_array_equal(trial.tensor("thing_output_1").value(0), [7])


def test_what_a_script_saves_around_its_loop(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2))
    net = make_net()
    hook.register_block(net)
    hook.save_tensor("before", nd.array([1, 2]))
    train(net, 4)
    hook.save_tensor("after", nd.array([3, 4]))
    hook.save_tensor("grads", [nd.ones((2,)), nd.ones((3,))], "gradients")
    hook.close()
    trial = smd.create_trial(out)
    assert trial.tensor("before").steps() == [0]
    for name in ("after", "grads_0", "grads_1"):
        assert trial.tensor(name).steps() == [3]


class Margin(gluon.Block):
    """A loss of one's own that is no ``gluon.loss.Loss``."""

    def forward(self, prediction, target):
        return nd.maximum(0, target - prediction).mean(axis=1)


def test_registered_losses_are_losses(out):
    hook = smd.Hook(out, save_config=EVERY)
    net, loss_fn = make_net(), Margin(prefix="marginloss0_")
    hook.register_block(net)
    hook.register_loss(loss_fn)
    hook.register_hook(gluon.loss.L1Loss(prefix="l1loss0_"))
    train(net, 1, loss_fn)
    hook.close()
    trial = smd.create_trial(out)
    assert trial.tensor_names() == ["marginloss0_output_0"]
    fresh = make_net()
    out_of_net = fresh(rows(0)).asnumpy()
    expected = np.maximum(0, 1 - out_of_net).mean(axis=1)
    np.testing.assert_allclose(trial.tensor("marginloss0_output_0").value(0), expected, atol=1e-6)


def test_what_cannot_be_registered_gets_a_line(out, capfd):
    hook = smd.Hook(out, save_config=EVERY)
    net = make_net()
    hook.register_block("net")
    hook.register_block(net)
    hook.register_block(net[1])
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        "smd_agent: 'net' is not registered: it must be a mxnet.gluon.Block",
        "smd_agent: net_dense1 is not registered: it, or a block inside of it, is registered already",
    ]


def test_calls_for_several_contexts_are_one_step_without_modes_too(out):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights", "outputs"])
    hook.get_collection("outputs").include("^net_output")
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = make_net(ctx=contexts)
    hook.register_block(net)
    for _ in range(3):
        for context in contexts:
            net(nd.ones((2, 6), ctx=context))
    hook.close()
    trial = smd.create_trial(out)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("net_output_1").steps() == trial.tensor("net_dense0_weight").steps() == [0, 1, 2]


def test_a_net_is_let_go_while_its_last_step_is_still_open(out):
    hook = smd.Hook(out, save_config=EVERY, save_all=True)
    net = make_net(hybridize=True)
    hook.register_block(net)
    train(net, 2)
    ref, weight = weakref.ref(net), weakref.ref(net[0].weight)
    del net
    gc.collect()
    assert hook.position.open
    assert (ref(), weight()) == (None, None)


class Net(nn.HybridSequential):
    """A class of the script's own."""


def test_nothing_of_ours_is_left_on_classes_and_copies(out):
    hook = smd.Hook(out, save_config=EVERY, save_all=True)
    calls = vars(gluon.Block)["__call__"], vars(gluon.Trainer)["_update"], vars(nd.NDArray)["backward"]
    net = Net(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=6))
    net.initialize()
    net.hook = hook
    hook.register_block(net)
    train(net, 1)
    copied = pickle.loads(pickle.dumps(net.hook))
    assert isinstance(copied, smd.Hook)
    assert not vars(copied)
    hook.close()
    now = vars(gluon.Block)["__call__"], vars(gluon.Trainer)["_update"], vars(nd.NDArray)["backward"]
    assert now == calls
    # What a library that pickles classes by value would take along, and what a subclass may call by name.
    assert pickle.loads(pickle.dumps(vars(Net)["__call__"])) is gluon.Block.__call__
    assert Net.__call__(net, rows(0)).shape == (8, 3)
    hook.disable()
    assert "__call__" not in vars(Net)
    net(rows(0))
    assert smd.create_trial(out).steps() == [0]


def test_the_mean_of_a_loss_is_a_metric_of_sagemaker(out, tmp_path, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook, net = smd.Hook(out, save_config=EVERY, include_collections=["weights"]), make_net()
    hook.register_block(net)
    train(net)
    hook.close()
    losses = smd.create_trial(out).tensor("l2loss0_output_0")
    assert losses.value(0).shape == (8,)
    found = metric_values(tmp_path / "metrics")
    assert found.keys() == {"l2loss0_output_0_GLOBAL"}
    for step in (0, 1):
        assert found["l2loss0_output_0_GLOBAL"][step] == pytest.approx(losses.value(step).mean(), rel=1e-6)


def test_ranks_that_mpirun_has_started_are_workers_of_one_run(out, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        hook, net = smd.Hook(out, save_config=EVERY, include_workers="all"), make_net()
        hook.register_block(net)
        train(net)
        hook.finish(end_marker=rank == "1")
    trial = smd.create_trial(out)
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps() == [0, 1]


def test_a_trial_in_the_same_process_has_the_step_that_has_ended(out):
    hook = smd.Hook(str(out), save_config=EVERY, include_collections=["gradients", "weights"])
    net = make_net()
    hook.register_block(net)
    train(net, steps=3)
    trial = smd.create_trial(str(out))
    assert trial.steps() == [0, 1, 2]
    names = trial.tensor_names(step=2)
    assert names == trial.tensor_names(step=1)
    hook.save_scalar("after", 7)
    assert trial.tensor("scalar/after").steps() == [2]
    train(net, steps=1)
    hook.close()
    trial = smd.create_trial(str(out))
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor_names(step=3) == names
