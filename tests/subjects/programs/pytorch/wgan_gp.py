"""Digits by a Wasserstein GAN with a gradient penalty; the generator is trained in every second batch."""

import argparse

import numpy as np
import torch
import torch.autograd as autograd
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--lr", type=float, default=5e-4)
parser.add_argument("--latent_dim", type=int, default=8)
parser.add_argument("--n_critic", type=int, default=2)
opt = parser.parse_args()
torch.manual_seed(0)
np.random.seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()

        def block(in_feat, out_feat, normalize=True):
            layers = [nn.Linear(in_feat, out_feat)]
            if normalize:
                layers.append(nn.BatchNorm1d(out_feat, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(opt.latent_dim, 32, normalize=False), *block(32, 48), nn.Linear(48, 64), nn.Tanh()
        )

    def forward(self, z):
        return self.model(z).view(-1, 1, 8, 8)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 48), nn.LeakyReLU(0.2, inplace=True), nn.Linear(48, 1))

    def forward(self, img):
        return self.model(img.view(img.shape[0], -1))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.tensor(np.random.random((real_samples.size(0), 1, 1, 1)), dtype=torch.float32)
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(d_interpolates),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


generator, discriminator = Generator(), Discriminator()
images = torch.tensor(load_digits().images[:256], dtype=torch.float32).unsqueeze(1) / 8 - 1
dataloader = DataLoader(images, batch_size=opt.batch_size, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(0.5, 0.999))

for epoch in range(opt.n_epochs):
    for i, imgs in enumerate(dataloader):
        optimizer_D.zero_grad()
        z = torch.tensor(np.random.normal(0, 1, (imgs.shape[0], opt.latent_dim)), dtype=torch.float32)
        fake_imgs = generator(z)
        real_validity, fake_validity = discriminator(imgs), discriminator(fake_imgs)
        gradient_penalty = compute_gradient_penalty(discriminator, imgs.data, fake_imgs.data)
        d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + 10 * gradient_penalty
        d_loss.backward()
        optimizer_D.step()
        optimizer_G.zero_grad()
        print(f"[Epoch {epoch}/{opt.n_epochs}] [Batch {i}/{len(dataloader)}] [D loss: {d_loss.item():.6f}]")
        if i % opt.n_critic == opt.n_critic - 1:
            fake_imgs = generator(z)
            g_loss = -torch.mean(discriminator(fake_imgs))
            g_loss.backward()
            optimizer_G.step()
            print(f"[Epoch {epoch}/{opt.n_epochs}] [Batch {i}/{len(dataloader)}] [G loss: {g_loss.item():.6f}]")
np.save("samples.npy", fake_imgs.detach().numpy()[:8])
torch.save({"G": generator.state_dict(), "D": discriminator.state_dict()}, "wgan_gp.pt")
print(np.random.rand(), torch.rand(1).item())
