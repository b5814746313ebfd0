"""Hourly bike rentals (simulated): neural Poisson regression."""
import argparse
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame({
        "hour": rng.integers(0, 24, n),
        "temp": rng.normal(15, 8, n),
        "rain": rng.random(n) < 0.2,
        "weekend": rng.random(n) < 2 / 7,
    })
    commute = np.exp(-((df.hour - 8) / 1.8) ** 2) + np.exp(-((df.hour - 17) / 2.2) ** 2)
    leisure = np.exp(-((df.hour - 14) / 4.0) ** 2)
    log_rate = 0.6 + 1.7 * np.where(df.weekend, leisure, commute) + 0.03 * df.temp - 0.9 * df.rain
    df["count"] = rng.poisson(np.exp(log_rate))
    return df


def features(df):
    ang = 2 * np.pi * df.hour / 24
    cols = [np.sin(ang), np.cos(ang), np.sin(2 * ang), np.cos(2 * ang),
            (df.temp - 15) / 8, df.rain.astype(float), df.weekend.astype(float)]
    return torch.tensor(np.stack(cols, 1), dtype=torch.float32)


class RateNet(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.rate = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softplus(self.rate(x)).squeeze(-1)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--hidden", type=int, default=48)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--epochs", type=int, default=16)
    args = ap.parse_args()

    torch.manual_seed(0)
    train, test = simulate(5000, 0), simulate(1500, 1)
    x_tr, y_tr = features(train), torch.tensor(train["count"].values, dtype=torch.float32)
    x_te, y_te = features(test), torch.tensor(test["count"].values, dtype=torch.float32)

    model = RateNet(x_tr.shape[1], args.hidden)
    criterion = nn.PoissonNLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        losses = []
        for idx in torch.randperm(len(x_tr)).split(128):
            loss = criterion(model(x_tr[idx]), y_tr[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 2 == 0:
            with torch.no_grad():
                rate = model(x_te)
            mae = (rate - y_te).abs().mean()
            print(f"epoch {epoch:2d} nll {np.mean(losses):.4f} test MAE {mae:.3f} "
                  f"mean rate {rate.mean():.2f} (data {y_te.mean():.2f})")
