"""A variational autoencoder of small images of bars, with a warm-up of the KL term and a test after each epoch."""

import argparse
import pickle

import torch
import torch.nn.functional as F
from torch import nn


def bars(n, seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(n, 1, 8, 8)
    for image, place in zip(images, torch.randint(0, 16, (n,), generator=generator).tolist()):
        if place < 8:
            image[0, place] = 1
        else:
            image[0, :, place - 8] = 1
    return (images + 0.1 * torch.rand(images.shape, generator=generator)).clamp(0, 1)


class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()
        )
        self.fc_mu = nn.Linear(16 * 4, latent)
        self.fc_logvar = nn.Linear(16 * 4, latent)
        self.fc_decode = nn.Linear(latent, 16 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
        )

    def encode(self, x):
        h = self.encoder(x).flatten(1)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)

    def decode(self, z):
        return self.decoder(F.relu(self.fc_decode(z)).view(-1, 16, 2, 2))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(logits, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return BCE + beta * KLD, BCE, KLD


def train(epoch, model, optimizer, data, args):
    model.train()
    train_loss = 0.0
    beta = min(1.0, (epoch + 1) / args.warm_up)
    for batch_idx, x in enumerate(data.split(args.batch_size)):
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss, bce, kld = loss_function(recon, x, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = batch_idx * args.batch_size
            print(f"Train Epoch: {epoch} [{done}/{len(data)}] BCE {bce.item():.4f} KLD {kld.item():.4f}")
    print(f"====> Epoch: {epoch} Average loss: {train_loss / (batch_idx + 1):.4f}")


@torch.no_grad()
def test(model, data):
    model.eval()
    return sum(loss_function(model(x)[0], x, *model.encode(x), 1.0)[0].item() for x in data.split(64))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1)
    train_data, test_data = bars(240, 0), bars(64, 1)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        train(epoch, model, optimizer, train_data, args)
        print(f"====> Test set loss: {test(model, test_data):.4f}")
    with torch.no_grad():
        sample = torch.sigmoid(model.decode(torch.randn(2, 4)))
    with open("vae.pkl", "wb") as file:
        pickle.dump({k: v.numpy() for k, v in model.state_dict().items()} | {"sample": sample.numpy()}, file)
    print("next", torch.randn(1).item())
