"""Trains an LSTM to tell rising from falling chirps."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)


def chirps(n, steps=30):
    t = torch.linspace(0, 1, steps)
    label = torch.randint(0, 2, (n,))
    phase = 2 * math.pi * torch.rand(n, 1)
    slope = torch.where(label == 1, 6.0, -6.0)[:, None] * (0.6 + 0.8 * torch.rand(n, 1))
    start = torch.where(label == 1, 2.0, 8.0)[:, None]
    wave = torch.sin(2 * math.pi * (start * t + 0.5 * slope * t**2) + phase)
    return (wave + 0.1 * torch.randn_like(wave)).unsqueeze(-1), label


class Classifier(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(input_size=1, hidden_size=hidden)
        self.head = nn.Linear(hidden, 2)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


def main():
    loader = DataLoader(TensorDataset(*chirps(640)), batch_size=32, shuffle=True, drop_last=True)
    x_val, y_val = chirps(200)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(-1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
