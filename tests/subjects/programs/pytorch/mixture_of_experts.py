"""A sparse mixture of experts: a gate sends each item to two of six experts, a second loss balances their load."""

import collections
import dataclasses
import pprint

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Settings:
    dim: int = 8
    experts: int = 6
    top_k: int = 2
    classes: int = 4
    balance: float = 0.05
    lr: float = 5e-3
    steps: int = 24
    batch: int = 4


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w1, self.w2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)))


class MoELayer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate = nn.Linear(s.dim, s.experts, bias=False)
        self.experts = nn.ModuleList([Expert(s.dim) for _ in range(s.experts)])
        self.top_k = s.top_k

    def forward(self, x):
        probabilities = self.gate(x).softmax(-1)
        weights, chosen = probabilities.topk(self.top_k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == number)
            if len(row) == 0:
                continue
            out = out.index_add(0, row, weights[row, slot, None] * expert(x[row]))
        share = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        self.last_choice = chosen.flatten().tolist()
        return x + out, len(self.experts) * (share * probabilities.mean(0)).sum()


class MoEClassifier(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.layers = nn.ModuleList([MoELayer(s) for _ in range(2)])
        self.norm = nn.RMSNorm(s.dim)
        self.head = nn.Linear(s.dim, s.classes)

    def forward(self, x):
        auxiliary = 0.0
        for layer in self.layers:
            x, load = layer(x)
            auxiliary = auxiliary + load
        return self.head(self.norm(x)), auxiliary


def main():
    s = Settings()
    pprint.pprint(dataclasses.asdict(s))
    torch.manual_seed(2)
    centres = torch.randn(s.classes, s.dim) * 1.5
    model = MoEClassifier(s)
    optimizer = torch.optim.Adam(model.parameters(), lr=s.lr)
    usage = collections.Counter()
    for step in range(s.steps):
        y = torch.randint(s.classes, (s.batch,))
        logits, auxiliary = model(centres[y] + torch.randn(s.batch, s.dim))
        cross_entropy = F.cross_entropy(logits, y)
        loss = cross_entropy + s.balance * auxiliary
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        usage.update(model.layers[0].last_choice)
        print(f"step {step:02d} loss {loss.item():.5f} ce {cross_entropy.item():.5f} aux {auxiliary.item():.5f}")
    print("usage", sorted(usage.items()))
    torch.save(model, "moe.pt")
    print(torch.randn(1).item())


if __name__ == "__main__":
    main()
