"""EqualSamples, on trainings of PyTorch, Keras and Gluon: a batch of one sample, and batches that only look like it."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig
from smd_agent.rules import EqualSamples
from smd_agent.rules.judging import Judging

STEPS = 5
SAVED = {"save_config": SaveConfig(save_interval=1), "include_collections": ["usage", "input_digests"]}


def with_pytorch(out, batches):
    torch = pytest.importorskip("torch")
    import smd_agent.pytorch as smd

    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(batches[0][0].size, 1))
    hook = smd.Hook(out, **SAVED)
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for batch in batches:
        optimizer.zero_grad()
        model(torch.from_numpy(batch)).square().mean().backward()
        optimizer.step()
    hook.close()


def with_keras(out, batches):
    keras = pytest.importorskip("tensorflow").keras
    import smd_agent.tensorflow as smd

    shape = batches[0].shape
    model = keras.Sequential([keras.layers.Input(shape[1:]), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    hook = smd.KerasHook(out, **SAVED)
    rows, targets = np.concatenate(batches), np.zeros((shape[0] * len(batches), 1))
    model.fit(rows, targets, batch_size=shape[0], shuffle=False, verbose=0, callbacks=[hook])
    hook.close()


def with_gluon(out, batches):
    mxnet = pytest.importorskip("mxnet")
    import smd_agent.mxnet as smd

    net = mxnet.gluon.nn.Dense(1, prefix="net_")
    net.initialize()
    hook = smd.Hook(out, **SAVED)
    hook.register_block(net)
    hook.set_mode(smd.modes.TRAIN)
    trainer = mxnet.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    for batch in batches:
        with mxnet.autograd.record():
            loss = (net(mxnet.nd.array(batch)) ** 2).mean()
        loss.backward()
        trainer.step(1)
    hook.close()


FRAMEWORKS = [with_pytorch, with_keras, with_gluon]


def verdict(out, train, batches):
    train(out, batches)
    judging = Judging(create_trial(out), [EqualSamples()])
    judging.take_new()
    return judging.verdict()


def different(*shape, seed=0):
    return [*np.random.default_rng(seed).normal(size=(STEPS, *shape)).astype(np.float32)]


def equal(*shape):
    return [np.repeat(batch[:1], shape[0], 0) for batch in different(*shape)]


def all_but_one(*shape):
    batches = equal(*shape)
    for batch in batches:
        batch[-1] += 1
    return batches


@pytest.mark.parametrize("shape", [(8, 5), (70, 3, 9, 9)])
@pytest.mark.parametrize("train", FRAMEWORKS)
def test_one_sample_stands_for_all(out, train, shape):
    (found,) = verdict(out, train, equal(*shape)).findings
    assert (found.mode, found.first_step, found.last_step) == (ModeKeys.TRAIN, 2, STEPS - 1)
    assert found.tensor.startswith("usage/input/")
    assert found.evidence == {"equal_samples": 1}


GOOD = {
    "different samples": different(8, 5),
    "different images": different(8, 3, 9, 9),
    "all but one": all_but_one(8, 5),
    "the same at all steps": equal(8, 5)[:1] * STEPS,
    "one number each": equal(8, 1),
    "batches of one sample": different(1, 5),
    "two equal batches": equal(8, 5)[:2] + different(8, 5)[2:],
}


@pytest.mark.parametrize("case", GOOD)
@pytest.mark.parametrize("train", FRAMEWORKS)
def test_batches_in_which_samples_differ(out, train, case):
    assert verdict(out, train, GOOD[case]).findings == []


def test_another_input_may_tell_samples_apart(out):
    torch = pytest.importorskip("torch")
    import smd_agent.pytorch as smd

    class Net(torch.nn.Bilinear):
        """Is given the same context for all samples."""

    model = Net(5, 5, 1)
    hook = smd.Hook(out, **SAVED)
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    for context, rows in zip(equal(8, 5), different(8, 5, seed=1), strict=True):
        model(torch.from_numpy(context), torch.from_numpy(rows)).sum().backward()
    hook.close()
    judging = Judging(create_trial(out), [EqualSamples()])
    judging.take_new()
    assert (judging.verdict().judged, judging.verdict().findings) == (["EqualSamples"], [])
