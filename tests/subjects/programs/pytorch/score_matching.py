"""Score matching on two rings: the trace of the score's Jacobian comes from torch.func, samples from Langevin steps."""

import math
import pathlib

import torch
from torch import nn
from torch.func import jacfwd, vmap


class ScoreNet(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden), nn.Softplus(), nn.Linear(hidden, hidden), nn.Softplus(), nn.Linear(hidden, dim)
        )

    def forward(self, x):
        return self.layers(x)


def rings(n):
    radius = torch.where(torch.rand(n) < 0.5, 1.0, 2.0) + 0.05 * torch.randn(n)
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


def score_matching_loss(model, samples):
    jacobian = vmap(jacfwd(model))(samples)
    trace = torch.diagonal(jacobian, dim1=-2, dim2=-1).sum(-1)
    norm = 0.5 * model(samples).pow(2).sum(1)
    return (norm + trace).mean()


@torch.no_grad()
def langevin(model, x, steps=10, eps=0.02):
    for _ in range(steps):
        x = x + eps / 2 * model(x) + math.sqrt(eps) * torch.randn_like(x)
    return x


if __name__ == "__main__":
    torch.manual_seed(13)
    model = ScoreNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for t in range(18):
        loss = score_matching_loss(model, rings(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{t} {loss.item():.6f}")
    samples = langevin(model, torch.randn(32, 2))
    pathlib.Path("samples.txt").write_text("\n".join(f"{a:.5f} {b:.5f}" for a, b in samples.tolist()))
    torch.save(model.state_dict(), "score.pt")
    print(f"mean radius {samples.norm(dim=1).mean().item():.5f}", torch.rand(1).item())
