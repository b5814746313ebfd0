"""What Gluon scripts hear and do not hear of the agent: lines for what is missing, failures that are theirs, forks."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mxnet")

from harness.compare import Both, assert_untouched, run_both

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

EXAMPLE = Path(__file__).parents[2] / "examples" / "gluon_digits.py"

START = """
import sys, mxnet as mx, numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
mx.random.seed(1), np.random.seed(1)
x = nd.array(np.random.rand(8, 6))
def dense(prefix, **kwargs):
    net = nn.Dense(3, in_units=6, prefix=prefix, **kwargs)
    net.initialize(mx.init.Xavier())
    return net
def sgd(net):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
def train(net, *inputs):
    trainer = sgd(net)
    with autograd.record():
        loss = net(*inputs or [x]).sum()
    loss.backward()
    trainer.step(8)
"""


@pytest.fixture
def both(runner):
    """Run a script with the agent and without; return the agent's lines but the first and the last."""

    def run(body, config=None):
        config = config or {"HookParameters": {"save_interval": 1, "save_all": True}}
        found = run_both(runner, runner.write(START + body), config=config)
        assert_untouched(found)
        told = [line.removeprefix("smd_agent: ") for line in found.said]
        usual = (f"saving all tensors to {found.folder}", "saving losses, ", "saved ")
        return [line for line in told if not line.startswith(usual)], found.folder

    return run


def test_each_thing_that_cannot_be_saved_is_told_once(both):
    lines, _ = both(
        """
class Sum(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.one, self.two = nn.Activation("tanh"), nn.Activation("tanh")
            self.fc = nn.Dense(3, in_units=6)
    def hybrid_forward(self, F, x):
        return self.fc(self.one(x) + self.two(x))
net = Sum(prefix="twins_")
net.initialize()
net.hybridize()
train(net)
train(net)
monitored = nn.HybridSequential(prefix="watched_")
monitored.add(nn.Dense(3, in_units=6, prefix="inner_"))
monitored.initialize()
monitored.hybridize()
monitored.register_op_hook(lambda *shown: None)
train(monitored)
# Training with dropout and the like off, and a backward of its own after an evaluation.
quiet = dense("quiet_")
train(quiet)
with autograd.record(train_mode=False):
    loss = quiet(x).sum()
loss.backward()
far = gluon.contrib.nn.SparseEmbedding(10, 3, prefix="far_")
far.initialize()
train(far, nd.array([1, 2, 1]))
"""
    )
    assert "gradients of a backward pass in a step of mode EVAL are not saved" in lines
    assert len(lines) == len({*lines})
    watched = "inputs and outputs of the blocks inside of watched_ are not saved: it has a monitor of its own"
    assert [line for line in lines if "watched" in line] == [watched.replace("watched_", "watched")]
    merged = [line for line in lines if "twins" in line]
    assert len(merged) == 1
    assert merged[0].endswith("of the inputs and outputs inside of twins are not saved: MXNet merged operations")
    assert "far_weight is not saved: it is a sparse parameter" in lines
    assert len(lines) == 4


def test_gradients_that_no_backward_makes_are_said_to_be_missing(both):
    lines, run = both(
        """
net = dense("net_")
for _ in range(2):
    with autograd.record():
        loss = net(x).sum()
        weight, bias = autograd.grad([loss], [net.weight.data(), net.bias.data()])
    net.weight.set_data(net.weight.data() - 0.1 * weight)
print(net.weight.data().asnumpy().tolist())
""",
        {
            "HookParameters": {"save_interval": 1},
            "CollectionConfigurations": [{"CollectionName": "weights"}, {"CollectionName": "gradients"}],
        },
    )
    assert lines == ["no tensor of losses, gradients came up in a step that was saved"]
    assert create_trial(str(run)).tensor_names() == ["net_weight"]


def test_a_program_that_trains_nothing_is_told_so_when_it_was_launched_for_it(runner):
    script = runner.write(START + "dense('net_')(x)\nprint('done')\n")
    launched = runner.by_launcher("--out", runner.folder / "run", script)
    line = "smd_agent: nothing was captured: no training was seen (a gluon.Block called while autograd recorded)\n"
    assert (launched.returncode, launched.stdout, launched.stderr) == (0, "done\n", line)


def test_a_failing_operation_of_the_program_still_fails_there(both):
    """MXNet reports such a failure at the next wait and then forgets it, and saving waits first."""
    lines, run = both(
        """
net = dense("net_", dtype="float16")
trainer = sgd(net)
for k in range(2):
    try:
        with autograd.record():
            out = net(nd.ones((2, 6), dtype="float16"))
        print(out.asnumpy())
    except mx.base.MXNetError as error:
        print("refused", str(error).splitlines()[-1])
"""
    )
    reason = "saving it failed (OperationFailedError: an operation of the program has failed); all else goes on"
    assert lines[0] == f"net_input_0 is missing in step 0: {reason}"
    assert [line.partition(" ")[0] for line in lines[1:]] == ["no"]
    # What is in its place in memory has come of that failure.
    assert not [name for name in create_trial(str(run)).tensor_names() if "output" in name]


@pytest.mark.cold
def test_workers_that_load_data_stay_out(both):
    lines, run = both(
        """
class Slow(gluon.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i): return np.full(6, i, dtype="float32"), np.float32(i % 3)
if __name__ == "__main__":
    net = dense("net_")
    trainer = sgd(net)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="crossloss0_")
    for epoch in range(2):
        for rows, labels in gluon.data.DataLoader(Slow(), batch_size=8, num_workers=2):
            with autograd.record():
                loss = loss_fn(net(rows), labels)
            loss.backward()
            trainer.step(8)
    print(net.weight.data().asnumpy().tolist())
"""
    )
    trial = create_trial(str(run))
    assert lines == []
    assert trial.workers() == ["worker_0"]
    assert trial.steps(mode=ModeKeys.TRAIN) == [*range(6)]
    for step in range(6):
        first = (step % 3) * 8
        assert trial.tensor("net_input_0").value(step, mode=ModeKeys.TRAIN)[:, 0].tolist() == [*range(first, first + 8)]


@pytest.mark.cold
def test_the_example_is_saved_as_the_launcher_does_by_default_and_trains_the_same(runner):
    pytest.importorskip("sklearn")
    words = ["--epochs", "5"]
    plain = runner.plain(EXAMPLE, *words, "--save", "plain.params")
    run = runner.folder / "run"
    launched = runner.by_launcher("--out", run, EXAMPLE, *words, "--save", "agent.params")
    both = Both(plain, launched, run)
    assert_untouched(both)
    assert plain.stdout.count("\n") == 5
    assert (runner.folder / "plain.params").read_bytes() == (runner.folder / "agent.params").read_bytes()
    trial = both.trial
    # 23 batches to train with and 6 to test with, five times.
    first = [0, 1, 2, 3, 5, 10, 20]
    assert trial.steps(mode=ModeKeys.EVAL) == first
    # More of the first ones, as far as there is time.
    assert {*first, 50, 100} <= {*trial.steps(mode=ModeKeys.TRAIN)}
    gradient = trial.tensor("gradient/hybridsequential0_conv0_weight")
    assert gradient.shape(100, mode=ModeKeys.TRAIN) == (16, 1, 3, 3)
    stored = gradient.reduction_values(100, mode=ModeKeys.TRAIN)
    assert len(stored) == 9
    assert stored["nan_count", False] == 0 < stored["l2", False]
    assert trial.tensor("gradient/hybridsequential0_conv0_bias").value(100, mode=ModeKeys.TRAIN).shape == (16,)
    # Facts of the training are among what is saved by default.
    assert trial.tensor("optimizer/SGD/lr").value(100, mode=ModeKeys.TRAIN) == 0.1
    assert trial.tensor("update_ratio/hybridsequential0_conv0_weight").value(100, mode=ModeKeys.TRAIN) > 0


COUNTED = """
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

counts = {"block": 0, "own": 0}
original = gluon.Block.__call__

def wrapper(block, *args):
    counts["block"] += 1
    return original(block, *args)

gluon.Block.__call__ = wrapper

class Net(nn.Dense):
    def __call__(self, *args):
        counts["own"] += 1
        return super().__call__(*args)

mx.random.seed(1)
net = Net(1, in_units=3, prefix="net_")
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd")
for _ in range(3):
    with autograd.record():
        loss = net(nd.ones((2, 3))) ** 2
    loss.backward()
    trainer.step(2)
print(counts, net.weight.data().sum().asscalar())
"""


@pytest.mark.parametrize("interval", [1, 2])
def test_the_call_by_which_a_block_is_found_is_one_call(runner, interval):
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    both = run_both(runner, runner.write(COUNTED), config=config, strict=True)
    assert_untouched(both)
    for name in ("net_input_0", "net_output_0", "gradient/net_weight"):
        assert both.trial.tensor(name).steps() == list(range(0, 3, interval))
