"""A training of 25 steps that ends in several ways, and writes down the weights that it leaves."""

import argparse
import copy
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from ends import end_by

parser = argparse.ArgumentParser()
parser.add_argument("--end", default="returns")
parser.add_argument("--stop-at", type=int, default=17)
parser.add_argument("--amid", action="store_true")
parser.add_argument("--change", default="nothing")
parser.add_argument("--function", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.body(x))


def leave(model):
    np.savez("weights.npz", **{name: one.detach().numpy() for name, one in model.named_parameters()})
    for one in model.parameters():
        print(one.double().sum().item())
    print(torch.rand(1).item())


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, y = torch.randn(25, 8, 6), torch.randint(3, (25, 8))
    best = None
    try:
        for number in range(25):
            if number == args.stop_at and not args.amid:
                end_by(args.end)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[number]), y[number])
            loss.backward()
            if number == args.stop_at and args.amid:
                end_by(args.end)
            optimizer.step()
            if number == 12:
                best = copy.deepcopy(model.state_dict())
        model.eval()
        with torch.no_grad():
            print(model(x[0]).sum().item())
        if args.change == "loaded":
            model.load_state_dict(best)
        elif args.change == "assigned":
            model.load_state_dict(best, assign=True)
        elif args.change == "averaged":
            with torch.no_grad():
                for name, one in model.named_parameters():
                    one.mul_(0.9).add_(best[name], alpha=0.1)
        elif args.change == "double":
            model.double()
    finally:
        leave(model)


def main():
    train(Net())


torch.manual_seed(3)
if args.end == "SIGTERM":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
if args.function:
    main()
else:
    net = Net()
    train(net)
