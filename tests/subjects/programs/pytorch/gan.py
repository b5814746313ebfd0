"""A Wasserstein GAN with gradient penalty: five updates of the critic for each of the generator."""

import torch
import torch.nn as nn
from torch import autograd

DIM, BATCH, CRITIC_ITERS, ITERS, LAMBDA = 32, 32, 5, 8, 0.1

torch.manual_seed(1)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, DIM), nn.ReLU(True), nn.Linear(DIM, DIM), nn.ReLU(True), nn.Linear(DIM, 2)
        )

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, DIM), nn.ReLU(True), nn.Linear(DIM, DIM), nn.ReLU(True), nn.Linear(DIM, 1)
        )

    def forward(self, inputs):
        return self.main(inputs).view(-1)


def weights_init(m):
    if isinstance(m, nn.Linear):
        m.weight.data.normal_(0.0, 0.1)
        m.bias.data.fill_(0)


def calc_gradient_penalty(netD, real, fake):
    alpha = torch.rand(BATCH, 1).expand_as(real)
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    disc = netD(interpolates)
    gradients = autograd.grad(disc, interpolates, torch.ones_like(disc), create_graph=True, retain_graph=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


def inf_train_gen():
    centers = torch.tensor([(1, 0), (-1, 0), (0, 1), (0, -1)], dtype=torch.float32)
    while True:
        yield centers[torch.randint(4, (BATCH,))] + torch.randn(BATCH, 2) * 0.02


netG, netD = Generator(), Discriminator()
netD.apply(weights_init)
netG.apply(weights_init)
print(netG)
print(netD)
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
one, mone = torch.tensor(1.0), torch.tensor(-1.0)
data = inf_train_gen()

for iteration in range(ITERS):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(CRITIC_ITERS):
        real = next(data)
        netD.zero_grad()
        D_real = netD(real).mean()
        D_real.backward(mone)
        with torch.no_grad():
            noise = torch.randn(BATCH, 2)
            fake = netG(noise)
        D_fake = netD(fake).mean()
        D_fake.backward(one)
        penalty = calc_gradient_penalty(netD, real, fake)
        penalty.backward()
        D_cost = D_fake - D_real + penalty
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G = netD(netG(torch.randn(BATCH, 2))).mean()
    G.backward(mone)
    optimizerG.step()
    print(f"iter {iteration} disc cost {D_cost.item():.6f} gen cost {-G.item():.6f}")

torch.save(netG.state_dict(), "netG.pth")
torch.save(netD.state_dict(), "netD.pth")
print(torch.rand(3))
