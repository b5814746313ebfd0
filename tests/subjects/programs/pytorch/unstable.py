"""A regression whose learning rate finder goes too far: it ends by an error once the loss is no longer a number."""

import math

import torch
from torch import nn


class DivergedError(ArithmeticError):
    def __init__(self, step, lr, loss):
        super().__init__(f"loss is {loss} in step {step}, learning rate {lr:.3g}")
        self.step = step


class RangeTest:
    """Raises the learning rate by a factor in every step."""

    def __init__(self, model, criterion, lowest, factor):
        self.model, self.criterion, self.factor = model, criterion, factor
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lowest)
        self.history = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        lr = self.optimizer.param_groups[0]["lr"]
        self.history.append((lr, loss.item()))
        if not math.isfinite(loss.item()):
            raise DivergedError(len(self.history) - 1, lr, loss.item())
        self.optimizer.param_groups[0]["lr"] = lr * self.factor
        return loss.item()

    def run(self, x, y, steps):
        for number in range(steps):
            print(f"step {number} loss {self.step(x, y):.6g}", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    finder = RangeTest(model, nn.MSELoss(), lowest=1e-3, factor=4.0)
    try:
        finder.run(x, y, 40)
    finally:
        torch.save({"history": finder.history, "weights": model.state_dict()}, "range_test.pt")
        print("next", torch.rand(1).item())


main()
