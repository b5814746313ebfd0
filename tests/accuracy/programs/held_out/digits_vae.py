"""Variational autoencoder on the digits with an 8-dimensional latent space."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)

LATENT = 8


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
        self.to_mu = nn.Linear(128, LATENT)
        self.to_logvar = nn.Linear(128, LATENT)
        self.dec = nn.Sequential(
            nn.Linear(LATENT, 128),
            nn.ReLU(),
            nn.Linear(128, 256),
            nn.ReLU(),
            nn.Linear(256, 64),
        )

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="mean")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return rec, kl


def main():
    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    train, test = x[:1500], x[1500:]
    loader = DataLoader(TensorDataset(train), batch_size=100, shuffle=True)
    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(1, 26):
        model.train()
        rec_sum = kl_sum = 0.0
        for (xb,) in loader:
            opt.zero_grad()
            logits, mu, logvar = model(xb)
            rec, kl = elbo_terms(logits, xb, mu, logvar)
            loss = rec + kl
            loss.backward()
            opt.step()
            rec_sum += rec.item()
            kl_sum += kl.item()
        model.eval()
        with torch.no_grad():
            logits, mu, logvar = model(test)
            mse = F.mse_loss(torch.sigmoid(logits), test).item()
        n = len(loader)
        print(f"epoch {epoch:2d} rec {rec_sum / n:.4f} kl {kl_sum / n:.4f} test mse {mse:.4f}")

    base = F.mse_loss(train.mean(0).expand_as(test), test).item()
    print(f"mse of the mean image {base:.4f}, latent std {mu.std(0).mean().item():.4f}")


if __name__ == "__main__":
    main()
