import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(123)
np.random.seed(123)

LATENT = 8
BATCH = 64
EPOCHS = 120

images = load_digits().data.astype("float32") / 16.0
train_x, test_x = train_test_split(images, test_size=0.2, random_state=123)
train_x, test_x = torch.from_numpy(train_x), torch.from_numpy(test_x)


class VAE(nn.Module):
    def __init__(self, d_in=64, d_hidden=128, d_latent=LATENT):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d_in, d_hidden), nn.ReLU())
        self.mu = nn.Linear(d_hidden, d_latent)
        self.logvar = nn.Linear(d_hidden, d_latent)
        self.dec = nn.Sequential(
            nn.Linear(d_latent, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_in), nn.Sigmoid()
        )

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def vae_loss(x_hat, x, mu, logvar):
    recon = F.binary_cross_entropy(x_hat, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
    return recon + kl, recon, kl


vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)

for epoch in range(1, EPOCHS + 1):
    vae.train()
    order = torch.randperm(len(train_x))
    logs = []
    for chunk in order.split(BATCH):
        x = train_x[chunk]
        x_hat, mu, logvar = vae(x)
        loss, recon, kl = vae_loss(x_hat, x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logs.append((loss.item(), recon.item(), kl.item()))
    if epoch % 15 == 0:
        l, r, k = np.mean(logs, axis=0)
        print(f"epoch {epoch:3d} | loss {l:8.4f} | recon {r:8.4f} | kl {k:7.4f}")

vae.eval()
with torch.no_grad():
    mu, logvar = vae.encode(test_x)
    rebuilt = vae.dec(mu)
    mse = F.mse_loss(rebuilt, test_x).item()
    base = F.mse_loss(train_x.mean(0).expand_as(test_x), test_x).item()
print(f"test reconstruction MSE {mse:.4f} (mean image: {base:.4f})")
print(f"explained variance      {1 - mse / base:.3f}")
