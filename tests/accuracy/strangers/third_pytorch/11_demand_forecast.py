"""Hourly electricity demand: forecast the next 12 hours from the last 72 with an LSTM."""
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Config:
    history: int = 72
    horizon: int = 12
    hidden: int = 32
    batch_size: int = 64
    epochs: int = 18
    lr: float = 5e-3
    lr_step: int = 6
    lr_gamma: float = 0.5
    seed: int = 2024


def simulate(n_hours, rng):
    t = np.arange(n_hours)
    daily = np.sin(2 * np.pi * t / 24 - 1.2) + 0.4 * np.sin(4 * np.pi * t / 24)
    weekend = -0.8 * (((t // 24) % 7) >= 5)
    weather = np.zeros(n_hours)
    for i in range(1, n_hours):
        weather[i] = 0.97 * weather[i - 1] + 0.12 * rng.normal()
    return (50 + 8 * daily * (1 + 0.3 * weekend) + 6 * weekend + 4 * weather
            + 0.8 * rng.normal(size=n_hours)).astype("float32")


def windows(series, cfg):
    total = cfg.history + cfg.horizon
    w = np.lib.stride_tricks.sliding_window_view(series, total)
    w = torch.from_numpy(w.copy())
    return w[:, :cfg.history, None], w[:, cfg.history:]


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.lstm = nn.LSTM(1, cfg.hidden, batch_first=True)
        self.fc = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)

    series = simulate(24 * 7 * 14, rng)
    split = int(len(series) * 0.8)
    mean, std = series[:split].mean(), series[:split].std()
    scaled = (series - mean) / std
    x_train, y_train = windows(scaled[:split], cfg)
    x_test, y_test = windows(scaled[split:], cfg)

    model = Forecaster(cfg)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=cfg.lr_step, gamma=cfg.lr_gamma)

    for epoch in range(1, cfg.epochs + 1):
        model.train()
        perm = torch.randperm(len(x_train))
        train_loss = 0.0
        for i in range(0, len(perm), cfg.batch_size):
            idx = perm[i:i + cfg.batch_size]
            optimizer.zero_grad()
            loss = loss_fn(model(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
            scheduler.step()
            train_loss += loss.item() * len(idx)

        model.eval()
        with torch.no_grad():
            pred = model(x_test)
            mae = (pred - y_test).abs().mean().item() * std
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d}  train mse {train_loss / len(perm):.4f}  test MAE {mae:.3f} MW")

    naive = (x_test[:, -24:-12, 0] - y_test).abs().mean().item() * std
    print(f"same hour yesterday: MAE {naive:.3f} MW")


if __name__ == "__main__":
    main()
