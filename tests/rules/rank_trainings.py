"""Trainings on two ranks by several ways, some of which have a fault; each rank is a worker of the way's run.

usage: rank_trainings.py FOLDER    (the run of a way is FOLDER/<way>)
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import torch

# DistributedDataParallel imports it: once here, and not in each fork.
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import smd_agent.pytorch as smd

RANKS, STEPS = 2, 12
WAYS = (
    "data_parallel",
    "by_hand",
    "averaged_now_and_then",
    "experts",
    "nothing_reduced",
    "late_head",
    "same_batches",
    "same_batches_of_experts",
    "one_batch",
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.head = nn.Linear(6, 12), nn.LayerNorm(12), nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.norm(torch.relu(self.inner(x))))


def batches(way, rank):
    """Different ones on each rank, unless nobody has divided the data."""
    generator = torch.Generator().manual_seed(7 if way.startswith("same_batches") else rank)
    one = torch.randn(16, 6, generator=generator)
    if way == "one_batch":
        dist.broadcast(one, 0)
    for _ in range(STEPS):
        x = one if way == "one_batch" else torch.randn(16, 6, generator=generator)
        yield x, torch.randint(0, 4, (16,), generator=generator)


def average(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor)
        tensor /= RANKS


def train(way, rank, hook):
    # Ranks begin with different weights where they are parts of one model, or models of their own.
    torch.manual_seed(rank if way.endswith("experts") else 0)
    net = Net()
    is_wrapped = way in ("data_parallel", "same_batches", "one_batch", "late_head")
    model = DistributedDataParallel(net, find_unused_parameters=way == "late_head") if is_wrapped else net
    if way == "late_head":
        net.head = nn.Linear(12, 4)
    hook.register_module(net)
    hook.set_mode(smd.modes.TRAIN)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for number, (x, y) in enumerate(batches(way, rank)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        if way == "by_hand":
            average([parameter.grad for parameter in net.parameters()])
        optimizer.step()
        if way == "averaged_now_and_then" and number % 3 == 2:
            average([parameter.data for parameter in net.parameters()])


def run(folder, way, rank):
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / f"{way}.store"), RANKS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    hook = smd.Hook(
        str(folder / way),
        save_config=smd.SaveConfig(save_interval=1),
        save_all=True,
        reduction_config=smd.ReductionConfig(reductions=["statistics"], save_raw_up_to=64, save_shape=True),
        include_workers="all",
    )
    train(way, rank, hook)
    hook.close()


def forked(folder, way, rank):
    child = os.fork()
    if child:
        return child
    try:
        run(folder, way, rank)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    # What is imported is not searched for models and optimizers.
    gc.collect()
    gc.freeze()
    for name in WAYS:
        children = [forked(Path(sys.argv[1]), name, number) for number in range(RANKS)]
        for one in children:
            if os.waitpid(one, 0)[1]:
                sys.exit(f"{name} has failed")
