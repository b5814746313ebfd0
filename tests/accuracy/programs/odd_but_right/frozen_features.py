"""Pretrains a feature extractor, freezes it and trains a small head on its features."""

import torch
from torch import nn

torch.manual_seed(71)


def samples(n):
    kind = torch.randint(0, 8, (n,))
    corner = torch.stack([(kind // 4) % 2, (kind // 2) % 2, kind % 2], dim=1).float() * 2 - 1
    hidden = corner + 0.35 * torch.randn(n, 3)
    return torch.cat([hidden * hidden.roll(1, 1), hidden, torch.randn(n, 10)], dim=1), kind


features = nn.Sequential(
    nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU()
)
pretext = nn.Linear(24, 8)
optimizer = torch.optim.Adam([*features.parameters(), *pretext.parameters()], lr=3e-3)
for _ in range(120):
    x, kind = samples(64)
    loss = nn.functional.cross_entropy(pretext(features(x)), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"pretraining loss {loss.item():.3f}")

# Only the head learns from here on; the statistics of the batch norms stay as they are, too.
features.requires_grad_(False).eval()
head = nn.Linear(24, 2)
optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
for step in range(120):
    x, kind = samples(64)
    with torch.no_grad():
        h = features(x)
    loss = nn.functional.cross_entropy(head(h), kind % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1} head loss {loss.item():.3f}")

x, kind = samples(1000)
with torch.no_grad():
    print(f"accuracy {(head(features(x)).argmax(1) == kind % 2).float().mean():.3f}")
