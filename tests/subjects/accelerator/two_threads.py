import threading

import torch
from shown import show
from torch import nn

torch.manual_seed(0)
models = [nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)).cuda() for _ in range(2)]
data = [(torch.randn(40, 32, 16, device="cuda"), torch.randint(0, 2, (40, 32), device="cuda")) for _ in range(2)]


def train(i):
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        optimizer = torch.optim.SGD(models[i].parameters(), 0.1)
        for x, y in zip(*data[i], strict=False):
            optimizer.zero_grad()
            nn.functional.cross_entropy(models[i](x), y).backward()
            optimizer.step()
        torch.cuda.current_stream().synchronize()


threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
show(*models)
