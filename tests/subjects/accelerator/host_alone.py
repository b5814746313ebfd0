"""A training on the host's processor, on a machine that has an accelerator: its children may be forked and use that."""

import multiprocessing

import torch
from shown import show
from torch import nn


def child(queue):
    x = torch.ones(4, device="cuda")
    queue.put(float((x * 2).sum()))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 2))
        loss.backward()
        optimizer.step()
    print("initialised", torch.cuda.is_initialized())
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    process.join(120)
    print("child", process.exitcode, queue.get(timeout=5) if process.exitcode == 0 else None)
    show(model, losses=[loss])
