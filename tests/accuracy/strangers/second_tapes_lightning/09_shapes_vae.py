# Variational autoencoder on little pictures of ellipses
import warnings
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
import lightning as L

warnings.filterwarnings("ignore")
SIZE = 20


def draw(n, gen):
    g = torch.arange(SIZE, dtype=torch.float32)
    yy, xx = torch.meshgrid(g, g, indexing="ij")
    cx = (torch.rand(n, 1, 1, generator=gen) * 8 + 6)
    cy = (torch.rand(n, 1, 1, generator=gen) * 8 + 6)
    rx = (torch.rand(n, 1, 1, generator=gen) * 3 + 2.5)
    ry = (torch.rand(n, 1, 1, generator=gen) * 3 + 2.5)
    d = ((xx - cx) / rx) ** 2 + ((yy - cy) / ry) ** 2
    return torch.sigmoid(6 * (1 - d)).reshape(n, -1)


class VAE(L.LightningModule):
    def __init__(self, hidden=128, latent=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, SIZE * SIZE), nn.Sigmoid())
        self.hist = []

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.dec(z), mu, logvar

    def elbo(self, x):
        x_hat, mu, logvar = self(x)
        rec = F.binary_cross_entropy(x_hat, x)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.size(0)
        return rec + kl, rec, kl

    def training_step(self, x, i):
        loss, rec, kl = self.elbo(x)
        self.hist.append((loss.item(), rec.item(), kl.item()))
        return loss

    def on_train_epoch_end(self):
        h = torch.tensor(self.hist).mean(0).tolist()
        self.hist.clear()
        if (self.current_epoch + 1) % 4 == 0:
            print("epoch %d | loss %.4f | rec %.4f | kl %.4f" % (self.current_epoch + 1, *h))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


L.seed_everything(0)
gen = torch.Generator().manual_seed(0)
train_x = draw(4000, gen)
test_x = draw(500, gen)

model = VAE()
trainer = L.Trainer(max_epochs=24, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False)
trainer.fit(model, DataLoader(train_x, batch_size=64, shuffle=True))

model.eval()
with torch.no_grad():
    mu, logvar = model.encode(test_x)
    recon = model.dec(mu)
    mse = F.mse_loss(recon, test_x).item()
    base = F.mse_loss(train_x.mean(0).expand_as(test_x), test_x).item()
    print(f"test reconstruction MSE {mse:.4f} (mean image: {base:.4f})")
    print("std of latent means:", [round(v, 3) for v in mu.std(0).tolist()])
    sample = model.dec(torch.randn(2, 4)).reshape(2, SIZE, SIZE)
    for row in range(0, SIZE, 2):
        print("  ".join("".join(" .:#"[min(3, int(v * 4))] for v in s[row]) for s in sample))
