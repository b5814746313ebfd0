"""One-step-ahead forecast of hourly electricity load with an MLP."""
import argparse
import numpy as np
import torch
from torch import nn


def make_series(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    daily = 12 * np.sin(2 * np.pi * t / 24) + 5 * np.sin(4 * np.pi * t / 24 + 0.7)
    weekly = 6 * np.sin(2 * np.pi * t / 168)
    ar = np.zeros(n)
    for i in range(1, n):
        ar[i] = 0.7 * ar[i - 1] + rng.normal(0, 3.0)
    return (100 + daily + weekly + ar).astype(np.float32)


def make_windows(series, window, horizon=1):
    xs, ys = [], []
    for i in range(len(series) - window - horizon + 1):
        xs.append(series[i:i + window])
        ys.append(series[i + window - horizon])
    return torch.tensor(np.array(xs)), torch.tensor(np.array(ys)).unsqueeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--window", type=int, default=48)
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--batch", type=int, default=64)
    opt = ap.parse_args()
    torch.manual_seed(0)

    load = make_series(4000, seed=5)
    split = 3200
    mean, std = load[:split].mean(), load[:split].std()
    norm = (load - mean) / std
    x_tr, y_tr = make_windows(norm[:split], opt.window)
    x_va, y_va = make_windows(norm[split:], opt.window)

    model = nn.Sequential(
        nn.Linear(opt.window, 64), nn.ReLU(),
        nn.Linear(64, 32), nn.ReLU(),
        nn.Linear(32, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=opt.lr, weight_decay=1e-3)
    loss_fn = nn.MSELoss()

    for epoch in range(opt.epochs):
        model.train()
        perm = torch.randperm(len(x_tr))
        running, batches = 0.0, 0
        for chunk in perm.split(opt.batch):
            optimizer.zero_grad()
            loss = loss_fn(model(x_tr[chunk]), y_tr[chunk])
            loss.backward()
            optimizer.step()
            running += loss.item()
            batches += 1
        model.eval()
        with torch.no_grad():
            pred = model(x_va)
            val = loss_fn(pred, y_va).item()
            mae = (pred - y_va).abs().mean().item() * std
        print(f"epoch {epoch + 1:2d}  train {running / batches:.4f}  val {val:.4f}  val MAE {mae:.2f} MW")

    # roll the model over the hours after the last window and compare
    with torch.no_grad():
        errors = []
        for h in range(split + opt.window, len(norm)):
            nxt = model(torch.tensor(norm[h - opt.window:h])[None]).item()
            errors.append(abs(nxt - norm[h]) * std)
    print(f"next-hour forecast MAE {np.mean(errors):.2f} MW")


if __name__ == "__main__":
    main()
