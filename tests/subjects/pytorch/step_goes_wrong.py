"""A training of which one step goes wrong, by what it is given; it prints losses, a digest of its weights, and numbers.

The fault is named by an option, and the step follows from the seed.
"""

from __future__ import annotations

import argparse
import hashlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

FAULTS = ("none", "log", "row", "half", "rate", "label", "dict", "targets", "changed", "accumulated")


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Half(Classifier):
    def forward(self, x):
        inside = self.body(x).half() * 100
        return self.head((inside * inside).float())  # HERE


class Rate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, x):
        return self.body(x)


class ReturnsDict(Classifier):
    def forward(self, batch):
        logits = super().forward(batch["x"])
        shares = logits.sigmoid() * batch["mask"]
        return {"logits": logits, "loss": -torch.log(shares.sum(-1)).mean()}  # HERE


class Copies(Classifier):
    def forward(self, x):
        return super().forward(x + 0)


class OwnLoss(nn.Module):
    def forward(self, logits, y):
        right = logits.sigmoid().gather(1, y[:, None]).squeeze(1)
        return -torch.log(right * (y != 2)).mean()  # HERE


def data(fault):
    x, y = torch.rand(64, 8), torch.randint(0, 2, (64,))
    if fault == "row":
        x[40] = float("nan")
    if fault == "half":
        x[40] *= 1000
    if fault == "label":
        y[40] = 3
    if fault == "log":
        y[40] = 2
    mask = torch.ones(64)
    if fault == "dict":
        mask[40] = 0
    targets = torch.rand(64, 3)
    if fault == "targets":
        targets[40, 1] = float("inf")
    return TensorDataset(x, y, mask[:, None], targets)


def train(options):
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    kinds = {"half": Half, "rate": Rate, "dict": ReturnsDict, "changed": Copies}
    model = kinds.get(options.fault, Classifier)(options.width)
    rate = 1e12 if options.fault == "rate" else 0.05
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    own, entropy = OwnLoss(), nn.CrossEntropyLoss()
    for _ in range(options.epochs):
        for place, (x, y, mask, targets) in enumerate(DataLoader(data(options.fault), batch_size=8, shuffle=True)):
            if options.fault == "accumulated" and place == 5:
                x = x / 0
            if options.fault == "dict":
                loss = model({"x": x, "mask": mask})["loss"]
            elif options.fault == "log":
                loss = own(model(x), y)
            elif options.fault in ("targets", "rate"):
                loss = F.mse_loss(model(x), targets)
            else:
                logits = model(x)
                if options.fault == "changed" and place == 3:
                    x.mul_(0)
                    logits = logits / 0
                loss = entropy(logits, y)
            loss.backward()
            print(loss.item())
            if options.fault != "accumulated" or place % 2:
                optimizer.step()
                optimizer.zero_grad()
    digest = hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in model.state_dict().values()))
    print(digest.hexdigest(), torch.rand(2).tolist())


parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS, default="none")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--epochs", type=int, default=2)
train(parser.parse_args())
