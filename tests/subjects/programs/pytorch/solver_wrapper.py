"""A pendulum with friction is identified from noisy curves; each call of the solver wraps the function anew."""

import numpy as np
import torch
import torch.nn as nn


class PerturbFunc(nn.Module):
    """Counts evaluations, and takes them in the middle of an interval."""

    def __init__(self, func, shift):
        super().__init__()
        self.func, self.shift, self.evaluations = func, shift, 0

    def forward(self, t, y):
        self.evaluations += 1
        return self.func(t + self.shift, y)


def odeint(func, y0, t, method="midpoint"):
    dt = t[1] - t[0]
    func = PerturbFunc(func, shift=1e-6)
    ys = [y0]
    for time in t[:-1]:
        y = ys[-1]
        if method == "midpoint":
            half = y + func(time, y) * dt / 2
            ys.append(y + dt * func(time + dt / 2, half))
        else:
            ys.append(y + dt * func(time, y))
    return torch.stack(ys, 1)


class Friction(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_length = nn.Parameter(torch.tensor(0.5))
        self.drag = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, t, y):
        angle, speed = y[..., :1], y[..., 1:]
        return torch.cat([speed, -torch.sin(angle) / self.log_length.exp() - self.drag(speed)], -1)


def data(n, t, seed):
    rng = np.random.default_rng(seed)
    y0 = rng.uniform(-1, 1, size=(n, 2))
    curves, y = [], y0
    for _ in t:
        curves.append(y)
        for _ in range(20):
            y = y + (t[1] - t[0]) / 20 * np.stack([y[:, 1], -np.sin(y[:, 0]) - 0.3 * y[:, 1]], 1)
    curves = np.stack(curves, 1) + rng.normal(0, 0.01, (n, len(t), 2))
    return torch.tensor(curves, dtype=torch.float32)


def main():
    torch.manual_seed(8)
    t = torch.linspace(0, 2, 7)
    curves = data(96, t.numpy(), 8)
    train, test = curves[:72], curves[72:]
    func = Friction()
    optimizer = torch.optim.AdamW(func.parameters(), lr=2e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(5):
        for batch in train[torch.randperm(len(train))].split(24):
            predicted = odeint(func, batch[:, 0], t)
            loss = (predicted - batch).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} loss {loss.item():.6f}")
        scheduler.step()
    with torch.no_grad():
        error = (odeint(func, test[:, 0], t, method="euler") - test).abs().mean()
    print(f"test error {error.item():.6f} length {func.log_length.exp().item():.5f}")
    torch.save(func.state_dict(), "pendulum.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
