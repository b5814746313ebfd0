"""Classify the waveform type of a noisy multichannel recording with an LSTM."""
import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def synth(n, length, channels, gen):
    t = torch.linspace(0, 1, length)
    labels = torch.randint(0, 4, (n,), generator=gen)
    data = torch.empty(n, length, channels)
    for i in range(n):
        freq = 2 + 1.5 * torch.rand(1, generator=gen)
        phase = torch.rand(1, generator=gen)
        cyc = (freq * t + phase) % 1.0
        kind = labels[i].item()
        if kind == 0:
            wave = torch.sin(2 * math.pi * cyc)
        elif kind == 1:
            wave = torch.sign(torch.sin(2 * math.pi * cyc))
        elif kind == 2:
            wave = 2 * cyc - 1
        else:
            wave = torch.sin(2 * math.pi * ((freq * t + 3 * t * t + phase) % 1.0))
        gains = 0.6 + 0.8 * torch.rand(channels, generator=gen)
        data[i] = wave[:, None] * gains + 0.5 * torch.randn(length, channels, generator=gen)
    return data, labels


class WaveLSTM(nn.Module):
    def __init__(self, n_channels, hidden, n_classes):
        super().__init__()
        self.lstm = nn.LSTM(n_channels, hidden, num_layers=1)
        self.head = nn.Linear(hidden, n_classes)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1, :])


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits, n = 0, 0
    for x, y in loader:
        hits += (model(x).argmax(dim=-1) == y).sum().item()
        n += len(y)
    return hits / n


def main(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    x, y = synth(3000, 40, 4, gen)
    x = (x - x.mean()) / x.std()
    train, valid = random_split(TensorDataset(x, y), [2400, 600], generator=gen)
    train_dl = DataLoader(train, batch_size=50, shuffle=True)
    valid_dl = DataLoader(valid, batch_size=50)

    model = WaveLSTM(4, cfg.hidden, 4)
    optim = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loss_fn = nn.CrossEntropyLoss()
    step = 0
    for epoch in range(cfg.epochs):
        model.train()
        for xb, yb in train_dl:
            optim.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            if step % 100 == 0:
                print(f"step {step:5d} loss {loss.item():.4f}")
            step += 1
        if (epoch + 1) % 5 == 0:
            print(f"--- epoch {epoch + 1}: valid acc {accuracy(model, valid_dl):.3f}")
    print(f"train acc {accuracy(model, train_dl):.3f}  valid acc {accuracy(model, valid_dl):.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=1)
    main(p.parse_args())
