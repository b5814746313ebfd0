"""Model-agnostic meta-learning of sine waves: a step of gradient descent is taken for each task, and differentiated."""

import math

import torch
from torch import nn
from torch.func import functional_call


class Sines:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(*shape, generator=self.generator)

    def task(self, k=10):
        amplitude, phase = self.uniform(0.1, 5.0, 1), self.uniform(0, math.pi, 1)
        x = self.uniform(-5, 5, 2 * k, 1)
        y = amplitude * torch.sin(x + phase)
        return (x[:k], y[:k]), (x[k:], y[k:])


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x)


def adapt(model, support, inner_lr, steps):
    x, y = support
    weights = dict(model.named_parameters())
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(model, weights, (x,)), y)
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: w - inner_lr * g for (name, w), g in zip(weights.items(), gradients)}
    return weights


def main(meta_iterations=15, tasks_per_batch=4, inner_lr=0.01):
    torch.manual_seed(9)
    sines = Sines(9)
    model = Regressor()
    meta_optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for iteration in range(meta_iterations):
        meta_optimizer.zero_grad()
        meta_loss = 0.0
        for _ in range(tasks_per_batch):
            support, (x, y) = sines.task()
            adapted = adapt(model, support, inner_lr, steps=1)
            meta_loss = meta_loss + nn.functional.mse_loss(functional_call(model, adapted, (x,)), y)
        meta_loss = meta_loss / tasks_per_batch
        meta_loss.backward()
        meta_optimizer.step()
        print(f"iteration {iteration}  meta loss {meta_loss.item():.5f}")
    support, (x, y) = sines.task()
    for steps in (0, 1, 5):
        weights = adapt(model, support, inner_lr, steps)
        print(f"after {steps} steps: {nn.functional.mse_loss(functional_call(model, weights, (x,)), y).item():.5f}")
    torch.save(model.state_dict(), "maml.pt")
    print(torch.rand(1).item(), torch.rand(1, generator=sines.generator).item())


if __name__ == "__main__":
    main()
