"""A GAN that draws digits: hinge-free, the usual BCE, labels smoothed."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
data = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float32)
generator = nn.Sequential(
    nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh()
)
discriminator = nn.Sequential(
    nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=5e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for step in range(150):
    real = data[torch.randint(len(data), (64,))]
    fake = generator(torch.randn(64, 16))
    loss_d = bce(discriminator(real), torch.full((64, 1), 0.9)) + bce(discriminator(fake.detach()), torch.zeros(64, 1))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = bce(discriminator(fake), torch.ones(64, 1))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 50 == 0:
        print(step, f"{loss_d.item():.3f} {loss_g.item():.3f}")
