"""Trains an autoencoder on the 8x8 digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self, code=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code))
        self.decoder = nn.Sequential(nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    torch.manual_seed(21)
    images = torch.tensor(load_digits().data, dtype=torch.float32)
    train, test = images[:1500], images[1500:]

    model = AutoEncoder()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(12):
        losses = []
        for idx in torch.randperm(len(train)).split(50):
            xb = train[idx]
            loss = criterion(model(xb), xb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d} reconstruction {sum(losses) / len(losses):.4f}")

    with torch.no_grad():
        explained = 1 - criterion(model(test), test) / test.var()
    print(f"variance explained {explained:.3f}")


if __name__ == "__main__":
    main()
