"""Toy GAN: learn a ring of eight gaussians."""
import math

import torch
import torch.nn as nn

torch.manual_seed(3)

NZ = 8
BATCH = 128
ITERS = 4000


def real_batch(n):
    k = torch.randint(8, (n,))
    angle = k.float() * math.pi / 4
    centers = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1) * 2
    return centers + 0.08 * torch.randn(n, 2)


netG = nn.Sequential(
    nn.Linear(NZ, 64), nn.ReLU(),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 2),
)
netD = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 1),
)

criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))

ones = torch.ones(BATCH, 1)
zeros = torch.zeros(BATCH, 1)


@torch.no_grad()
def sample_quality(n=2000):
    """share of samples close to a mode, and number of modes that get their part"""
    x = netG(torch.randn(n, NZ))
    angle = torch.arange(8).float() * math.pi / 4
    centers = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1) * 2
    dist, idx = torch.cdist(x, centers).min(1)
    good = dist < 0.32
    counts = torch.bincount(idx[good], minlength=8)
    return good.float().mean().item(), int((counts > n / 8 * 0.2).sum()), dist.mean().item()


for it in range(1, ITERS + 1):
    optD.zero_grad()
    optG.zero_grad()

    # --- discriminator ---
    real = real_batch(BATCH)
    fake = netG(torch.randn(BATCH, NZ))
    loss_real = criterion(netD(real), ones)
    loss_fake = criterion(netD(fake), zeros)
    lossD = loss_real + loss_fake
    lossD.backward(retain_graph=True)
    optD.step()

    # --- generator ---
    lossG = criterion(netD(fake), ones)
    lossG.backward()
    optG.step()

    if it % 500 == 0:
        share, modes, dist = sample_quality()
        print(f"{it:5d}  D {lossD.item():.3f}  G {lossG.item():.3f}  "
              f"good samples {share:.2f}  modes {modes}/8  mean distance {dist:.3f}")
