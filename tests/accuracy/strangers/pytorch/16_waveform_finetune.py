"""Pretrain a 1-d CNN on six waveform families, then adapt it to three new ones."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH = 64
t = np.linspace(0, 1, LENGTH, endpoint=False)


def square(p): return np.sign(np.sin(p))
def saw(p): return (p / np.pi) % 2 - 1
def tri(p): return 2 * np.abs(saw(p)) - 1


SOURCE = [
    lambda p: np.sin(p), square, saw, tri,
    lambda p: np.sin(p) + 0.6 * np.sin(2 * p),
    lambda p: np.sin(p) * (np.sin(p) > 0),
]
TARGET = [
    lambda p: -saw(p),
    lambda p: np.sin(p) + 0.6 * np.sin(3 * p),
    lambda p: np.abs(np.sin(p)) * 2 - 1,
]


def build(families, n, rng):
    y = rng.integers(0, len(families), n)
    x = np.empty((n, LENGTH), dtype=np.float32)
    for i, k in enumerate(y):
        p = 2 * np.pi * (rng.uniform(2, 5) * t + rng.uniform())
        x[i] = families[k](p) + rng.normal(0, 0.5, LENGTH)
    return torch.from_numpy(x).unsqueeze(1), torch.from_numpy(y)


class WaveNet1d(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 48, 3, padding=1), nn.BatchNorm1d(48), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.fc = nn.Linear(48, n_classes)

    def forward(self, x):
        return self.fc(self.features(x))


def run(model, optimizer, x, y, x_val, y_val, epochs, tag, batch=32):
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        if epoch % 2 == 0:
            print(f"{tag} epoch {epoch:2d} loss {total / len(x):.4f} val acc {acc:.3f}")


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = WaveNet1d(len(SOURCE))
    xs, ys = build(SOURCE, 1000, rng)
    xv, yv = build(SOURCE, 300, rng)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run(model, optimizer, xs, ys, xv, yv, 6, "pretrain")

    xt, yt = build(TARGET, 192, rng)
    xtv, ytv = build(TARGET, 400, rng)
    optimizer = torch.optim.Adam([
        {"params": model.features.parameters(), "lr": 5e-5},
        {"params": model.fc.parameters(), "lr": 5e-3},
    ])
    model.fc = nn.Linear(48, len(TARGET))
    run(model, optimizer, xt, yt, xtv, ytv, 12, "finetune")


if __name__ == "__main__":
    main()
