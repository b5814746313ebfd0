"""A GAN by Lightning with manual optimization; each half of a step toggles the optimizer that is not its own."""

import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Generator(nn.Module):
    def __init__(self, latent_dim):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(latent_dim, 24), nn.LeakyReLU(0.2), nn.Linear(24, 2))

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1), nn.Sigmoid())

    def forward(self, points):
        return self.model(points)


class GAN(L.LightningModule):
    def __init__(self, latent_dim=4, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator, self.discriminator = Generator(latent_dim), Discriminator()
        self.validation_z = torch.randn(8, latent_dim)

    def forward(self, z):
        return self.generator(z)

    def adversarial_loss(self, y_hat, y):
        return F.binary_cross_entropy(y_hat, y)

    def training_step(self, batch):
        (points,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(points.shape[0], self.hparams.latent_dim)
        valid, fake = torch.ones(points.size(0), 1), torch.zeros(points.size(0), 1)

        self.toggle_optimizer(optimizer_g)
        g_loss = self.adversarial_loss(self.discriminator(self(z)), valid)
        self.log("g_loss", g_loss, prog_bar=True)
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)

        self.toggle_optimizer(optimizer_d)
        real_loss = self.adversarial_loss(self.discriminator(points), valid)
        fake_loss = self.adversarial_loss(self.discriminator(self(z).detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        self.log("d_loss", d_loss, prog_bar=True)
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)
        print(f"batch {self.global_step // 2 - 1} g_loss {g_loss.item():.6f} d_loss {d_loss.item():.6f}")

    def configure_optimizers(self):
        parts = (self.generator, self.discriminator)
        return [torch.optim.Adam(part.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999)) for part in parts], []

    def on_train_epoch_end(self):
        spread = self(self.validation_z).std().item()
        print(f"epoch {self.current_epoch} spread {spread:.5f}")


if __name__ == "__main__":
    L.seed_everything(0)
    angle = torch.rand(160) * 6.2832
    ring = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(160, 2)
    loader = DataLoader(TensorDataset(ring), batch_size=32, shuffle=True)
    model = GAN()
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    trainer.save_checkpoint("gan.ckpt", weights_only=True)
    print(torch.rand(1).item())
