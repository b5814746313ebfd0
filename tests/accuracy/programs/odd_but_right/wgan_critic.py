"""Trains a Wasserstein GAN whose critic makes five updates for each of the generator's."""

import torch
from torch import nn

torch.manual_seed(72)
LATENT, CLIP, CRITIC_STEPS = 4, 0.1, 5


def real(n):
    return torch.tensor([1.5, -1.0]) + torch.randn(n, 2) @ torch.tensor([[0.6, 0.3], [0.0, 0.3]])


generator = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
g_opt = torch.optim.RMSprop(generator.parameters(), lr=3e-3)
c_opt = torch.optim.RMSprop(critic.parameters(), lr=3e-3)

for step in range(100):
    for _ in range(CRITIC_STEPS):
        with torch.no_grad():
            fake = generator(torch.randn(64, LATENT))
        # The negative distance: it may be of either sign and need not fall.
        c_loss = critic(fake).mean() - critic(real(64)).mean()
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-CLIP, CLIP)

    for p in critic.parameters():
        p.requires_grad_(False)
    g_loss = -critic(generator(torch.randn(64, LATENT))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    if step % 25 == 24:
        print(f"step {step + 1}: distance {-c_loss.item():.4f}")

with torch.no_grad():
    mean = generator(torch.randn(2000, LATENT)).mean(0)
print(f"mean of drawn points {mean[0]:.2f} {mean[1]:.2f}, of real ones 1.50 -1.00")
