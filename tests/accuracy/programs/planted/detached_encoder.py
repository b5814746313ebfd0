"""The codes are detached before the decoder: the encoder never learns."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x = torch.tensor(load_digits().data / 16, dtype=torch.float32)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, x):
        codes = self.encoder(x).detach()
        return self.decoder(codes)


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[batch]), x[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
