"""Trains a classifier with DistributedDataParallel in two processes on the CPU."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_data():
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(960, 16, generator=gen)
    score = x[:, :4].prod(1).sign() + 1.5 * x[:, 4] * x[:, 5]
    return x, (score > 0).long()


def work(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(100)
    data = TensorDataset(*make_data())
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=1)
    loader = DataLoader(data, batch_size=32, sampler=sampler)

    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)

    size = sum(p.abs().sum() for p in model.parameters()).detach()
    sizes = [torch.zeros_like(size) for _ in range(world)]
    dist.all_gather(sizes, size)
    if rank == 0:
        print("sum of weights by worker", [round(s.item(), 3) for s in sizes], flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.start_processes(work, args=(2, port), nprocs=2, start_method="fork")


if __name__ == "__main__":
    main()
