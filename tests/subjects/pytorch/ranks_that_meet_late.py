"""Two processes that train before they are told of each other, by no launcher's variables; knows nothing of the agent.

usage: python ranks_that_meet_late.py STORE NOTES
"""

import gc
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, steps, rank, notes):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,)))
        notes.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def run(rank, store, folder):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    notes = []
    model = nn.Sequential(nn.Linear(5, 3))
    # The second rank is the first to begin, so it takes itself for the only one.
    if rank == 0:
        while not Path(folder, "begun").exists():
            pass
    train(model, 2, rank, notes)
    Path(folder, "begun").touch()
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    wrapped = DistributedDataParallel(model)
    train(wrapped, 2, rank, notes)
    np.save(Path(folder, f"losses-{rank}.npy"), np.array(notes, np.float32))
    del wrapped, model
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, sys.argv[1:], nprocs=2)
