"""Trains a variational autoencoder on the 8x8 digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mu = nn.Linear(64, latent)
        self.log_var = nn.Linear(64, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        h = self.encoder(x)
        mu, log_var = self.mu(h), self.log_var(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * log_var)
        return self.decoder(z), mu, log_var


def vae_loss(logits, x, mu, log_var):
    reconstruction = nn.functional.binary_cross_entropy_with_logits(logits, x)
    divergence = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1).mean()
    return reconstruction + divergence, reconstruction, divergence


def main():
    torch.manual_seed(33)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        for xb in images[torch.randperm(1500)].split(60):
            logits, mu, log_var = model(xb)
            loss, reconstruction, divergence = vae_loss(logits, xb, mu, log_var)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} reconstruction {reconstruction.item():.4f} divergence {divergence.item():.4f}")

    model.eval()
    with torch.no_grad():
        test = images[1500:]
        logits, mu, _ = model(test)
        error = (torch.sigmoid(model.decoder(mu)) - test).pow(2).mean() / test.var(0).mean()
    print(f"unexplained variance {error:.3f}")


if __name__ == "__main__":
    main()
