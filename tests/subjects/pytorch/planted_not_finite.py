"""A training in which one fault is planted at step 3; it prints all that anybody could look at afterwards.

Arguments: the fault, and a seed.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

kind, seed = sys.argv[1], int(sys.argv[2])
AT = 3
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(3)])
        self.bn = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 4)
        self.on = False

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        x = self.noted(self.drop(self.bn(x)))
        return self.head(self.fault(x) if self.on else x)

    def noted(self, x):
        return x

    def fault(self, x):
        return x


class Log(Net):
    def fault(self, x):
        return x * torch.log(x.amax() - x).mean()  # HERE


class Sqrt(Net):
    def fault(self, x):
        return x + torch.sqrt((x * 0).abs())  # HERE


class Where(Net):
    def fault(self, x):
        return torch.where(x > 0, torch.sqrt(x.clamp(min=0)), torch.zeros_like(x))  # HERE


class Half(Net):
    def fault(self, x):
        return (x * 1e4).half().square().float()  # HERE


class Mask(Net):
    def fault(self, x):
        mask = torch.zeros(x.shape, dtype=torch.bool)
        mask[3] = True
        return torch.softmax(x.masked_fill(mask, float("-inf")), -1)  # HERE


class Normalisation(Net):
    def fault(self, x):
        return (x - x.mean(0)) / (x.std(0) * 0)  # HERE


class Checkpointed(Log):
    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(checkpoint(self.fault, self.drop(self.bn(x)), use_reentrant=False) if self.on else x)


class CheckpointedSqrt(Sqrt):
    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(checkpoint(self.fault, self.drop(self.bn(x)), use_reentrant=False) if self.on else x)


class Counting(Log):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = []
        self.by_name = {}

    def noted(self, x):
        self.calls += 1
        self.seen.append(x.detach().sum())
        self.by_name["last"] = x.shape
        return x


class Printing(Log):
    def noted(self, x):
        print("forward")
        return x


class Drawing(Log):
    def noted(self, x):
        return x + random.random() * 1e-3


class DrawingNumPy(Log):
    def noted(self, x):
        return x + float(np.random.rand()) * 1e-3


class DrawingOfItsOwn(Log):
    """Draws from a generator of its own, an object without attributes."""

    def __init__(self):
        super().__init__()
        self._own = torch.Generator().manual_seed(1)

    def noted(self, x):
        return x + torch.rand(1, generator=self._own) * 1e-3


class Environment(Log):
    def noted(self, x):
        os.environ["CALLS"] = str(int(os.environ.get("CALLS", 0)) + 1)
        return x


class Branching(Log):
    """What it does follows from how often it was called."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def noted(self, x):
        self.calls += 1
        return x * 2 if self.calls % 2 else x.sin()


NETS = {
    "log": Log,
    "sqrt": Sqrt,
    "where": Where,
    "half": Half,
    "mask": Mask,
    "normalisation": Normalisation,
    "one rank": Log,
    "compiled": Log,
    "compiled sqrt": Sqrt,
    "autocast": Log,
    "checkpointed": Checkpointed,
    "checkpointed sqrt": CheckpointedSqrt,
    "counting": Counting,
    "printing": Printing,
    "drawing": Drawing,
    "drawing numpy": DrawingNumPy,
    "drawing of its own": DrawingOfItsOwn,
    "environment": Environment,
    "branching": Branching,
    "hooked": Log,
    "printing hook": Log,
    "evaluated": Log,
}


def loss_of(out, y, step):
    """The loss, with its fault."""
    if step == AT and kind == "labels":
        target = torch.randn(len(y), 4)
        target[9, 1] = float("nan")
        return (out - target).pow(2).mean()
    loss = F.cross_entropy(out, y)
    if step == AT and kind == "division":
        return loss / (y.float().sum() * 0)
    if step == AT and kind == "log of loss":
        return loss - torch.log((out.softmax(1) * 0).sum())
    if step == AT and kind == "sqrt of loss":
        return loss + torch.sqrt((out * 0).square().sum())
    if step == AT and kind == "all ignored":
        return F.cross_entropy(out, torch.full_like(y, -100))
    return loss


def main():  # noqa: C901 - one training with all faults
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    rank = int(os.environ.get("RANK", 0))
    model = NETS.get(kind, Net)()
    run = model
    if kind.startswith("compiled"):
        run = torch.compile(model, backend="aot_eager" if kind == "compiled" else "eager")
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
        run = nn.parallel.DistributedDataParallel(model)
    if kind == "hooked":
        calls = {}
        model.head.register_forward_hook(lambda *_: calls.update(n=calls.get("n", 0) + 1))
    if kind == "printing hook":
        model.layers[1].register_forward_hook(lambda *_: print("hook"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    digest = hashlib.sha256()
    for step in range(8):
        x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))
        if step == AT:
            model.on = kind != "one rank" or rank == 1
            if kind == "row":
                x[7, 5] = float("nan")
            if kind == "loaded":
                with torch.no_grad():
                    model.layers[1].weight[2, 3] = float("nan")
            if kind == "rate":
                optimizer.param_groups[0]["lr"] = 1e18
        if kind == "evaluated":
            model.eval()
            with torch.no_grad():
                run(x)
            model.train()
        with torch.autocast("cpu", enabled=kind == "autocast"):
            out = run(x)
        loss = loss_of(out.float(), y, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found = [loss, *model.state_dict().values(), *(p.grad for p in model.parameters() if p.grad is not None)]
        for value in found:
            digest.update(value.detach().numpy().tobytes())
        digest.update(torch.get_rng_state().numpy().tobytes())
        digest.update(repr((random.getstate(), np.random.get_state()[1].tolist())).encode())
    attributes = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    words = kind, seed, rank, digest.hexdigest(), repr(attributes), os.environ.get("CALLS")
    # At once: another rank may write, too.
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()
    if kind == "hooked":
        print(calls)
    if "RANK" in os.environ:
        torch.distributed.destroy_process_group()


main()
