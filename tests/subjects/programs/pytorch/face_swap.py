"""Two faces share an encoder and have a decoder each; their autoencoders are trained in turns, by an optimizer each."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, x):
        return self.decoder(self.encoder(x))


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1), nn.LeakyReLU(0.1))


def upscale(i, o):
    return nn.Sequential(nn.Conv2d(i, o * 4, 3, padding=1), nn.LeakyReLU(0.1), nn.PixelShuffle(2))


def Encoder():
    return nn.Sequential(
        conv(1, 8), conv(8, 16), nn.Flatten(), nn.Linear(64, 24), nn.Linear(24, 64), nn.Unflatten(1, (16, 2, 2))
    )


def Decoder():
    return nn.Sequential(upscale(16, 8), upscale(8, 8), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())


def get_training_data(images, batch_size, rng):
    chosen = images[rng.integers(0, len(images), batch_size)]
    shift = rng.integers(-1, 2, 2)
    warped = np.roll(chosen, shift, (2, 3)) + rng.normal(0, 0.05, chosen.shape)
    return torch.tensor(warped, dtype=torch.float32), torch.tensor(chosen, dtype=torch.float32)


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    digits = load_digits()
    images_A, images_B = (digits.images[digits.target == label][:, None] / 16 for label in (3, 8))
    encoder = Encoder()
    autoencoder_A, autoencoder_B = Autoencoder(encoder, Decoder()), Autoencoder(encoder, Decoder())
    criterion = nn.L1Loss()
    optimizer_A = torch.optim.Adam(autoencoder_A.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_B = torch.optim.Adam(autoencoder_B.parameters(), lr=2e-3, betas=(0.5, 0.999))
    for epoch in range(18):
        warped_A, target_A = get_training_data(images_A, 32, rng)
        warped_B, target_B = get_training_data(images_B, 32, rng)
        optimizer_A.zero_grad()
        loss_A = criterion(autoencoder_A(warped_A), target_A)
        loss_A.backward()
        optimizer_A.step()
        optimizer_B.zero_grad()
        loss_B = criterion(autoencoder_B(warped_B), target_B)
        loss_B.backward()
        optimizer_B.step()
        print(f"epoch {epoch} loss_A {loss_A.item():.6f} loss_B {loss_B.item():.6f}")
    with torch.no_grad():
        swapped = autoencoder_B(torch.tensor(images_A[:4], dtype=torch.float32))
    np.save("swapped.npy", swapped.numpy())
    parts = {"encoder": encoder, "decoder_A": autoencoder_A.decoder, "decoder_B": autoencoder_B.decoder}
    for name, part in parts.items():
        torch.save(part.state_dict(), f"{name}.h5")
    print(torch.rand(1).item(), rng.random())


if __name__ == "__main__":
    main()
