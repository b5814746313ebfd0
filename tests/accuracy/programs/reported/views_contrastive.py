"""Trains an encoder with a contrastive loss on two noisy views of the same signal."""

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, inputs=20, dim=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.projector = nn.Linear(64, dim)

    def forward(self, x):
        return F.normalize(self.projector(self.body(x)), dim=-1)


def info_nce(a, b, temperature=0.1):
    logits = a @ b.t() * temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def views(signal):
    """The last twelve of the twenty inputs are noise, another one in each view."""
    noise = torch.randn(2, len(signal), 12) * 2
    return [torch.cat([signal + 0.1 * torch.randn_like(signal), n], dim=1) for n in noise]


def main():
    torch.manual_seed(17)
    encoder = Encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3, weight_decay=1e-3)
    for step in range(250):
        a, b = views(torch.randn(96, 8))
        loss = info_nce(encoder(a), encoder(b))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    with torch.no_grad():
        a, b = views(torch.randn(200, 8))
        found = (encoder(a) @ encoder(b).t()).argmax(1)
    print(f"partner found {(found == torch.arange(200)).float().mean():.3f}")


if __name__ == "__main__":
    main()
