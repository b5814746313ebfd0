"""Classify noisy waveforms (sine / square / sawtooth) with an LSTM."""

import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(5)
torch.manual_seed(5)

T = 32


def make_waves(n):
    """n sequences of shape (T, 1) and their class."""
    kind = rng.integers(0, 3, n)
    freq = rng.uniform(1.5, 3.5, n)[:, None]
    phase = rng.uniform(0, 1, n)[:, None]
    t = np.linspace(0, 1, T)[None]
    u = (freq * t + phase) % 1.0
    sine = np.sin(2 * np.pi * u)
    square = np.where(u < 0.5, 1.0, -1.0)
    saw = 2 * u - 1
    waves = np.stack([sine, square, saw])[kind, np.arange(n)]
    waves = waves + rng.normal(0, 0.15, waves.shape)
    x = torch.tensor(waves[:, :, None], dtype=torch.float32)
    return x, torch.tensor(kind, dtype=torch.long)


class WaveLSTM(nn.Module):
    def __init__(self, hidden=48, classes=3):
        super().__init__()
        self.lstm = nn.LSTM(input_size=1, hidden_size=hidden)
        self.norm = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        # x: (batch, time, feature)
        out, _ = self.lstm(x)
        last = out[:, -1]
        return self.fc(self.norm(last))


def main():
    x_train, y_train = make_waves(1200)
    x_test, y_test = make_waves(400)
    model = WaveLSTM()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(15):
        model.train()
        perm = torch.randperm(len(x_train))
        total = 0.0
        for idx in perm.split(50):
            logits = model(x_train[idx])
            loss = loss_fn(logits, y_train[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            hits = 0
            for xb, yb in zip(x_test.split(50), y_test.split(50)):
                hits += (model(xb).argmax(1) == yb).sum().item()
        print(f"epoch {epoch:2d} loss {total / len(perm):.4f} acc {hits / len(x_test):.3f}")


if __name__ == "__main__":
    main()
