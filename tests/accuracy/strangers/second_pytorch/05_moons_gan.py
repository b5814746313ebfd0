# Toy GAN on the two moons distribution
import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.manual_seed(3)
points, _ = make_moons(n_samples=8000, noise=0.06, random_state=3)
points = torch.tensor(points, dtype=torch.float32)
points = (points - points.mean(0)) / points.std(0)
real_train, real_test = points[:6000], points[6000:]

z_dim = 8
steps = 5000
batch = 128

G = nn.Sequential(
    nn.Linear(z_dim, 64), nn.LeakyReLU(0.2),
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
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(batch, 1), torch.zeros(batch, 1)


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


for step in range(1, steps + 1):
    real = real_train[torch.randint(0, len(real_train), (batch,))]
    fake = G(torch.randn(batch, z_dim))

    # discriminator
    opt_d.zero_grad()
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    d_loss.backward()
    opt_d.step()

    # generator
    opt_g.zero_grad()
    g_loss = bce(D(fake.detach()), ones)
    g_loss.backward()
    opt_g.step()

    if step % 500 == 0:
        with torch.no_grad():
            ed = energy_distance(G(torch.randn(2000, z_dim)), real_test)
        print(f"step {step:5d}  D {d_loss.item():.3f}  G {g_loss.item():.3f}  energy dist {ed:.4f}")

with torch.no_grad():
    sample = G(torch.randn(2000, z_dim))
    near = (torch.cdist(sample, real_test).min(dim=1).values < 0.1).float().mean().item()
    cover = (torch.cdist(real_test, sample).min(dim=1).values < 0.1).float().mean().item()
print(f"samples close to the data: {near:.3f}   data covered: {cover:.3f}")
