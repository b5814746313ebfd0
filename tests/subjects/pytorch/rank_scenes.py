"""Distributed training loops of PyTorch, one process a rank; knows nothing of the agent.

usage: torchrun rank_scenes.py [NOTES]    (each rank stores its notes in NOTES-<rank>.npz)
"""

import gc
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ["RANK"])
RANKS = 2
if len(sys.argv) > 1:
    sys.argv[1] += f"-{RANK}.npz"

from notes import note, note_model, noting, play


class Net(nn.Module):
    """A model whose layers do not divide evenly among two ranks."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 5)
        self.fc2 = nn.Linear(5, 3)
        self.extra = nn.Linear(5, 3)

    def forward(self, x, extra=False):
        hidden = torch.relu(self.fc1(x))
        return self.extra(hidden) if extra else self.fc2(hidden)


def batch(scene, step, rank):
    """Return the inputs and classes that a rank trains on; every rank can make every rank's."""
    generator = torch.Generator().manual_seed(1000 * scene + 10 * step + rank)
    return torch.randn(8, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator)


def own_loss(model, scene, step, rank, **kwargs):
    x, y = batch(scene, step, rank)
    return nn.CrossEntropyLoss()(model(x, **kwargs), y)


def whole(state):
    # What is only computed for the notes must draw no random numbers.
    with torch.random.fork_rng():
        model = Net()
    model.load_state_dict(state)
    return model


def gradients_by_hand(model, scene, step, ranks=range(RANKS), **kwargs):
    """Return the mean over all ranks of the gradients of these ranks' batches, by the parameters that have any."""
    copy = whole(model.state_dict())
    names, parameters = zip(*copy.named_parameters(), strict=True)
    sums = {}
    for rank in ranks:
        loss = own_loss(copy, scene, step, rank, **kwargs)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for key, gradient in zip(names, found, strict=True):
            if gradient is not None:
                sums[key] = sums.get(key, 0) + gradient / RANKS
    return sums


def note_by_hand(step, model, scene, batch_step=None, **kwargs):
    note_model("Net", step, model)
    if noting:
        for key, value in gradients_by_hand(model, scene, step if batch_step is None else batch_step, **kwargs).items():
            note(f"gradient/Net_{key}", step, value)


def before_the_process_group():
    """Ranks that start to train before they know each other."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        note_model("Net", k, model)
        optimizer.zero_grad()
        loss = own_loss(model, 1, k, RANK)
        note("CrossEntropyLoss_output_0", k, loss)
        loss.backward()
        note("gradient/Net_fc1.weight", k, model.fc1.weight.grad)
        optimizer.step()
    dist.init_process_group("gloo")
    return [model], 2, 0


def train(inner, model, scene, steps, optimizer=None, extra=lambda k: {}):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(steps):
        note_by_hand(k, inner, scene, **extra(k))
        optimizer.zero_grad()
        loss = own_loss(model, scene, k, RANK, **extra(k))
        note("CrossEntropyLoss_output_0", k, loss)
        loss.backward()
        optimizer.step()


def data_parallel():
    inner = Net()
    inner.extra.requires_grad_(False)
    model = DistributedDataParallel(inner)
    train(inner, model, 2, 3)
    model.eval()
    with torch.no_grad():
        note("Net_output_0", 0, model(batch(2, 9, RANK)[0]), "EVAL")
        note("Net_output_0", 1, inner(batch(2, 9, RANK)[0]), "EVAL")
    return [inner], 3, 2


def unused_parameters():
    inner = Net()
    model = DistributedDataParallel(inner, find_unused_parameters=True, gradient_as_bucket_view=True)
    train(inner, model, 3, 4, extra=lambda k: {"extra": k % 2 == 1})
    return [inner], 4, 0


def static_graph():
    inner = Net()
    model = DistributedDataParallel(inner, static_graph=True)
    train(inner, model, 4, 3)
    return [inner], 3, 0


def accumulation_without_sync():
    inner = Net()
    inner.extra.requires_grad_(False)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        if noting:
            first, second = (gradients_by_hand(inner, 5, 2 * k + i) for i in range(2))
            for key in first:
                note(f"gradient/Net_{key}", k, first[key] + second[key])
        optimizer.zero_grad()
        with model.no_sync():
            own_loss(model, 5, 2 * k, RANK).backward()
        own_loss(model, 5, 2 * k + 1, RANK).backward()
        optimizer.step()
    return [inner], 2, 0


def uneven_batches():
    inner = Net()
    inner.extra.requires_grad_(False)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = (2, 4)[RANK]
    with model.join():
        for k in range(steps):
            # A rank that has run out of batches adds nothing, and is still divided by.
            note_by_hand(k, inner, 6, ranks=[0, 1] if k < 2 else [1])
            optimizer.zero_grad()
            own_loss(model, 6, k, RANK).backward()
            optimizer.step()
    return [inner], steps, 0


def compiled():
    inner = Net()
    inner.extra.requires_grad_(False)
    model = torch.compile(DistributedDataParallel(inner), backend="aot_eager")
    train(inner, model, 7, 3)
    return [inner], 3, 0


def sharded_optimizer():
    inner = Net()
    inner.extra.requires_grad_(False)
    model = DistributedDataParallel(inner)
    train(inner, model, 8, 3, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1))
    return [inner], 3, 0


def part(tensor):
    """Return a rank's rows of a parameter: the first rank has the longer part."""
    chunks = torch.chunk(tensor, RANKS)
    return chunks[RANK] if len(chunks) > RANK else tensor[:0]


def shard(model, **options):
    mesh = init_device_mesh("cpu", (RANKS,))
    fully_shard(model.fc1, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def train_sharded(model, scene, twin, evaluate_at):
    """Train a sharded model, and beside it one that is whole, which is what the notes are of."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluations = 0
    for k in range(4):
        if k in evaluate_at:
            model.eval()
            with torch.no_grad():
                output = model(batch(scene, 9, RANK)[0])
            # Before the first step of training nothing tells that this model is the one to save.
            if k:
                note("Net_output_0", evaluations, output, "EVAL")
                evaluations += 1
            model.train()
        for key, value in twin.items():
            note(f"Net_{key}", k, part(value))
        if noting:
            for key, value in gradients_by_hand(whole(twin), scene, k).items():
                note(f"gradient/Net_{key}", k, part(value))
                twin[key] = twin[key] - 0.1 * value
        optimizer.zero_grad()
        loss = own_loss(model, scene, k, RANK)
        note("CrossEntropyLoss_output_0", k, loss)
        loss.backward()
        optimizer.step()
    return 4, evaluations


def fully_sharded():
    model = Net()
    model.extra.requires_grad_(False)
    twin = {key: value.detach().clone() for key, value in model.named_parameters()}
    # An evaluation leaves the parameters of the outermost module whole until the next backward pass.
    train_steps, evaluations = train_sharded(shard(model), 9, twin, evaluate_at=(0, 2))
    return [Local(model)], train_steps, evaluations


def fully_sharded_in_half():
    model = Net()
    model.extra.requires_grad_(False)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    shard(model, mp_policy=policy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        for key, value in model.named_parameters():
            note(f"Net_{key}", k, value.to_local())
        optimizer.zero_grad()
        own_loss(model, 10, k, RANK).backward()
        note("gradient/Net_fc1.weight", k, model.fc1.weight.grad.to_local())
        optimizer.step()
    return [Local(model)], 2, 0


def fully_sharded_accumulating():
    model = Net()
    model.extra.requires_grad_(False)
    state = {key: value.detach().clone() for key, value in model.named_parameters()}
    if noting:
        first, second = (gradients_by_hand(whole(state), 11, k) for k in range(2))
        for key in first:
            note(f"gradient/Net_{key}", 0, part(first[key] + second[key]))
    shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        model.set_requires_gradient_sync(k == 1)
        own_loss(model, 11, k, RANK).backward()
    optimizer.step()
    return [Local(model)], 1, 0


class Local:
    """Shows a sharded model's own part where a whole model's state is asked for."""

    def __init__(self, model):
        self.model = model

    def state_dict(self):
        return {key: value.to_local() for key, value in self.model.state_dict().items()}


SCENES = [
    before_the_process_group,
    data_parallel,
    unused_parameters,
    static_graph,
    accumulation_without_sync,
    compiled,
    sharded_optimizer,
    fully_sharded,
    fully_sharded_in_half,
    fully_sharded_accumulating,
    # Afterwards the ranks are not at the same step any more.
    uneven_batches,
]

if __name__ == "__main__":
    play(SCENES, speaker=f"rank {RANK}")
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()
