import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)

LATENT = 8
HIDDEN = 128

data = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
perm = torch.randperm(len(data))
train_x, test_x = data[perm[:1500]], data[perm[1500:]]
loader = DataLoader(TensorDataset(train_x), batch_size=64, shuffle=True, drop_last=True)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.fc_mu = nn.Linear(HIDDEN, LATENT)
        self.fc_logvar = nn.Linear(HIDDEN, LATENT)
        self.dec = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(),
                                 nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64))

    def encode(self, x):
        h = self.enc(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def decode(self, z):
        return torch.sigmoid(self.dec(z))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x)
    kld = torch.mean(-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))
    return bce + kld, bce, kld


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, 61):
    model.train()
    sums = np.zeros(3)
    for (x,) in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss, bce, kld = loss_function(recon, x, mu, logvar)
        loss.backward()
        optimizer.step()
        sums += [loss.item(), bce.item(), kld.item()]

    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            mu, _ = model.encode(test_x)
            rec_mse = F.mse_loss(model.decode(mu), test_x).item()
        avg = sums / len(loader)
        print(f"Epoch {epoch:2d}: loss {avg[0]:.4f} (bce {avg[1]:.4f}, kld {avg[2]:.4f})  "
              f"test reconstruction mse {rec_mse:.4f}")

print("pixel variance of the test images:", round(test_x.var(dim=0).mean().item(), 4))
