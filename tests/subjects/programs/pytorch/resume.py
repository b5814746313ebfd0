"""A training that is interrupted and goes on from its checkpoint: model, optimizer, scheduler and random state."""

import argparse
import glob
import os
import random

import numpy as np
import torch
from torch import nn


class LSTMForecaster(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, dropout=0.1, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1]).squeeze(-1)


class Interrupted(Exception):
    pass


def windows():
    series = torch.sin(torch.arange(150) * 0.2) + 0.05 * torch.randn(150, generator=torch.Generator().manual_seed(0))
    x = series.unfold(0, 13, 1)
    return x[:, :-1, None], x[:, -1]


def save(path, **state):
    random_state = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    torch.save({**state, "random": random_state}, path + ".tmp")
    os.rename(path + ".tmp", path)


def latest():
    found = sorted(glob.glob("checkpoint_*.pt"))
    return found[-1] if found else None


def train(args):
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    np.random.seed(args.seed)
    x, y = windows()
    model = LSTMForecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    start = 0
    if args.resume and (path := latest()):
        checkpoint = torch.load(path, weights_only=False)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        random.setstate(checkpoint["random"]["python"])
        np.random.set_state(checkpoint["random"]["numpy"])
        torch.set_rng_state(checkpoint["random"]["torch"])
        start = checkpoint["epoch"] + 1
        print(f"resumed from {path} at epoch {start}")
    for epoch in range(start, args.epochs):
        model.train()
        running = 0.0
        for rows in torch.randperm(len(x)).split(46):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        scheduler.step()
        print(f"epoch {epoch} mse {running / 3:.6f}")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
        save(f"checkpoint_{epoch}.pt", epoch=epoch, **state)
        if args.interrupt == epoch:
            raise Interrupted(f"the machine is needed after epoch {epoch}")
    return model


def parse(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--interrupt", type=int)
    return parser.parse_args(words)


if __name__ == "__main__":
    try:
        train(parse(["--interrupt", "2"]))
    except Interrupted as error:
        print("interrupted:", error)
    model = train(parse(["--resume"]))
    print(sum(p.double().sum().item() for p in model.parameters()))
    print(random.random(), np.random.rand(), torch.rand(1).item())
