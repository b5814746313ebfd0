# GAN on a 2-d toy distribution (two moons)
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.manual_seed(3)
np.random.seed(3)

latent_dim = 4
batch_size = 128
n_iter = 1250

pts, _ = make_moons(4000, noise=0.06, random_state=3)
pts = (pts - pts.mean(0)) / pts.std(0)
real_data = torch.tensor(pts, dtype=torch.float32)

G = nn.Sequential(
    nn.Linear(latent_dim, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 2),
)
D = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 64), nn.LeakyReLU(0.2),
    nn.Linear(64, 1),
)
opt_g = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=5e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()

ones = torch.full((batch_size, 1), 0.9)
zeros = torch.zeros(batch_size, 1)


def distance_to_data(n=1000):
    """mean distance generated -> nearest real and real -> nearest generated"""
    with torch.no_grad():
        fake = G(torch.randn(n, latent_dim))
        d = torch.cdist(fake, real_data[:n])
    return d.min(1).values.mean().item(), d.min(0).values.mean().item()


print("start: fake->real %.3f real->fake %.3f" % distance_to_data())
for it in range(1, n_iter + 1):
    # ---- discriminator ----
    real = real_data[torch.randint(0, len(real_data), (batch_size,))]
    z = torch.randn(batch_size, latent_dim)
    fake = G(z).detach()
    opt_d.zero_grad()
    loss_real = criterion(D(real), ones)
    loss_fake = criterion(D(fake), zeros)
    loss_d = loss_real + loss_fake
    loss_d.backward()
    opt_d.step()

    # ---- generator ----
    opt_g.zero_grad()
    out = D(fake)
    loss_g = criterion(out, torch.ones_like(out))
    loss_g.backward()
    opt_g.step()

    if it % 250 == 0:
        a, b = distance_to_data()
        print("iter %4d  D %.3f  G %.3f  fake->real %.3f  real->fake %.3f" % (it, loss_d.item(), loss_g.item(), a, b))
