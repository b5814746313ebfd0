import logging
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("vae")


class VAE(nn.Module):
    def __init__(self, x_dim=64, h_dim=128, z_dim=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(x_dim, h_dim), nn.ReLU())
        self.mu = nn.Linear(h_dim, z_dim)
        self.logvar = nn.Linear(h_dim, z_dim)
        self.dec = nn.Sequential(nn.Linear(z_dim, h_dim), nn.ReLU(), nn.Linear(h_dim, x_dim))

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = self.reparameterize(mu, logvar)
        return self.dec(z), mu, logvar


def loss_function(logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(logits, x, reduction="mean")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return recon + kld / x.size(0), recon, kld / x.size(0)


@torch.no_grad()
def reconstruction_error(model, x):
    model.eval()
    _, mu, _ = model(x)
    rec = torch.sigmoid(model.dec(mu))
    return F.mse_loss(rec, x).item()


def main():
    torch.manual_seed(7)
    data = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    perm = torch.randperm(len(data))
    train, val = data[perm[:1500]], data[perm[1500:]]
    baseline = F.mse_loss(train.mean(0).expand_as(val), val).item()
    log.info("mse of the mean image: %.4f", baseline)

    model = VAE()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    batch = 50
    for epoch in range(1, 26):
        model.train()
        order = torch.randperm(len(train))
        tot = rec = kl = 0.0
        for i in range(0, len(train), batch):
            x = train[order[i:i + batch]]
            logits, mu, logvar = model(x)
            loss, r, k = loss_function(logits, x, mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item(); rec += r.item(); kl += k.item()
        n = len(train) // batch
        if epoch % 5 == 0:
            log.info("epoch %2d loss %.4f recon/pixel %.4f kl %.4f val mse %.4f",
                     epoch, tot / n, rec / n, kl / n, reconstruction_error(model, val))


if __name__ == "__main__":
    main()
