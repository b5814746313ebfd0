"""The counter of a block's calls: it counts as ``RunPosition.begin``."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from harness import counted_steps

pytest.importorskip("mxnet")

from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

from smd_agent.mxnet.step_counter import Counters, TrackedBlock


def call(block, training):
    with autograd.record() if training else nullcontext():
        block(nd.ones((1, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_a_blocks_counter_counts_as_all_steps_are_counted(seed):
    opener = counted_steps.Opener(seed)
    counters = Counters(opener)
    blocks = [nn.Dense(2, in_units=2), nn.HybridSequential()]
    blocks[1].add(nn.Dense(2, in_units=2))
    for block in blocks:
        block.initialize()
        counters.attach(TrackedBlock(block))
    models = list(counters._models.values())
    try:
        calls = [lambda training, block=block: call(block, training) for block in blocks]
        ours, others = counted_steps.compare(seed, opener, calls)
    finally:
        for tracked in models:
            counters.detach(tracked)
    assert ours == others
    assert {note[0] for note in ours} >= {"start", "finish"}


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_block_that_only_its_own_scope_holds_is_let_go(hybridize):
    block = nn.HybridSequential()
    with block.name_scope():
        block.add(nn.Dense(2, in_units=2))
    block.initialize()
    block.hybridize(hybridize)
    tracked = TrackedBlock(block)
    holders = [block]
    trainer = gluon.Trainer(block.collect_params(), "sgd")
    call(block, training=True)
    assert not tracked.is_let_go
    del block
    assert not tracked.is_let_go
    holders.clear()
    assert tracked.model is not None
    assert tracked.is_let_go
    assert trainer._params
