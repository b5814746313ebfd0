"""Contrastive learning of two views of each item with a learned temperature, then a linear probe on frozen features."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    def __init__(self, data, transform):
        self.data, self.transform = data, transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.transform(self.data[i]), self.transform(self.data[i])


def jitter(x, strength, keep):
    x = x + strength * torch.randn_like(x)
    return x * (torch.rand_like(x) < keep)


class SimCLR(nn.Module):
    def __init__(self, backbone, width, projected):
        super().__init__()
        self.backbone = backbone
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, projected))
        self.log_temperature = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=-1)

    def nt_xent(self, a, b):
        z = torch.cat([a, b])
        similarity = z @ z.T / self.log_temperature.exp()
        similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        targets = torch.arange(len(z)).roll(len(a))
        return F.cross_entropy(similarity, targets)


def cosine(step, total, lowest=0.1):
    return lowest + (1 - lowest) * 0.5 * (1 + torch.cos(torch.tensor(step / total * 3.14159)).item())


def main():
    torch.manual_seed(11)
    centres = 2 * torch.randn(5, 12)
    labels = torch.arange(160) % 5
    items = centres[labels] + torch.randn(160, 12)

    views = TwoViews(items, partial(jitter, strength=0.3, keep=0.9))
    loader = DataLoader(views, batch_size=32, shuffle=True)
    backbone = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 24))
    model = SimCLR(backbone, 24, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(cosine, total=5))
    print("pre-training")
    for epoch in range(5):
        losses = []
        for first, second in loader:
            loss = model.nt_xent(model(first), model(second))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        temperature = model.log_temperature.exp().item()
        print(f"epoch {epoch} contrastive loss {sum(losses) / len(losses):.6f} temperature {temperature:.4f}")

    print("linear probe")
    backbone.eval().requires_grad_(False)
    probe = nn.Linear(24, 5)
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.05)
    for epoch in range(10):
        with torch.no_grad():
            features = backbone(items)
        loss = F.cross_entropy(probe(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = (probe(features).argmax(1) == labels).float().mean()
        print(f"epoch {epoch} probe loss {loss.item():.6f} accuracy {accuracy:.3f}")
    torch.save({"backbone": backbone.state_dict(), "probe": probe.state_dict()}, "contrastive.pt")
    print(torch.initial_seed(), torch.rand(()).item())


if __name__ == "__main__":
    main()
