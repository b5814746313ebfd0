"""A PyTorch program that looks at who has called it, and fails now and then, in saved steps and in others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import torch
import torch.nn.functional as F
from callers import callers, failing
from torch import nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 3)

    def forward(self, x, how=""):
        if how == "look":
            callers()
        if how == "fail":
            raise KeyError("mine")
        return self.fc(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x, how=""):
        if how == "look":
            callers()
        return self.inner(x, how)


class Loss(nn.MSELoss):
    def forward(self, x, y):
        callers()
        return super().forward(x, y)


class Looking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        callers()
        return gradient


torch.manual_seed(0)
net = Net()
failing("optimizer", torch.optim.SGD, [3], lr=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
x, y = torch.randn(4, 5), torch.randn(4, 3)
for step in range(4):
    print("step", step)
    failing("forward", net, x, "fail")
    failing("wrong", net, x[:, :2])
    out = net(x, "look")
    net.inner(x, "look")
    failing("loss", nn.MSELoss(), out, 3)
    failing("functional", F.cross_entropy, out, 3)
    loss = Loss()(Looking.apply(out), y)
    failing("backward", torch.autograd.backward, out)
    failing("method", out.backward)
    failing("grad", torch.autograd.grad, out, out)
    failing("scale", scaler.scale, out, out)
    optimizer.zero_grad()
    loss.backward()
    failing("step", optimizer.step, 3)
    optimizer.step()
with torch.no_grad():
    net.eval()
    net(x, "look")
    failing("evaluation", net, x, "fail")
print(float(sum(p.sum() for p in net.parameters())))
