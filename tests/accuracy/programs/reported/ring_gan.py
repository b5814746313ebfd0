"""Trains a GAN to draw points on a ring."""

import math

import torch
from torch import nn

torch.manual_seed(8)
LATENT = 8


def real_points(n):
    angle = 2 * math.pi * torch.rand(n, 1)
    radius = 2.0 + 0.1 * torch.randn(n, 1)
    return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)


generator = nn.Sequential(nn.Linear(LATENT, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
discriminator = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
)
g_opt = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

for it in range(300):
    fake = generator(torch.randn(64, LATENT)).detach()
    d_loss = bce(discriminator(real_points(64)), ones) + bce(discriminator(fake), zeros)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    g_loss = bce(discriminator(fake), ones)
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()

    if it % 50 == 0:
        print(f"iteration {it}: D {d_loss.item():.3f} G {g_loss.item():.3f}")

with torch.no_grad():
    radii = generator(torch.randn(500, LATENT)).norm(dim=1)
print(f"radius of drawn points {radii.mean():.2f} +- {radii.std():.2f}")
