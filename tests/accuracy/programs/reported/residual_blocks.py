"""Trains a residual MLP on a function of ten inputs."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.lin(self.norm(x)))


class ResMLP(nn.Module):
    def __init__(self, inputs, width=40, depth=3):
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(-1)


def friedman(n):
    x = torch.rand(n, 10)
    y = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, (y - 14.4) / 5


def main():
    torch.manual_seed(12)
    x, y = friedman(1000)
    x_test, y_test = friedman(400)
    model = ResMLP(10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(12):
        for idx in torch.randperm(1000).split(50):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                print(f"epoch {epoch + 1} test mse {nn.functional.mse_loss(model(x_test), y_test):.4f}")


if __name__ == "__main__":
    main()
