import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(3, verbose=False)


def sample_ring(n, k=6, radius=2.0, std=0.15):
    idx = torch.randint(0, k, (n,))
    angle = idx * (2 * torch.pi / k)
    centers = radius * torch.stack([angle.cos(), angle.sin()], dim=1)
    return (centers + std * torch.randn(n, 2)) / 1.45


def mlp(n_in, n_out, width=64):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, n_out),
    )


class RingGAN(L.LightningModule):
    def __init__(self, latent_dim=8, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = mlp(latent_dim, 2)
        self.discriminator = mlp(2, 1)
        self.reference = sample_ring(1500)

    def forward(self, z):
        return self.generator(z)

    def adversarial_loss(self, logits, target):
        return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()

        # generator
        z = torch.randn(real.size(0), self.hparams.latent_dim)
        g_loss = self.adversarial_loss(self.discriminator(self(z)), 1.0)
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()

        # discriminator
        fake = self(z).detach()
        d_loss = 0.5 * (self.adversarial_loss(self.discriminator(real), 0.9)
                        + self.adversarial_loss(self.discriminator(fake), 0.0))
        self.manual_backward(d_loss)
        opt_d.step()

        self.log_dict({"g_loss": g_loss, "d_loss": d_loss}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % 3 == 0:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch + 1:2d}  g {m['g_loss']:.3f}  d {m['d_loss']:.3f}  "
                  f"energy distance {self.energy_distance():.4f}")

    @torch.no_grad()
    def energy_distance(self):
        fake = self(torch.randn(1500, self.hparams.latent_dim))
        real = self.reference
        d = lambda a, b: torch.cdist(a, b).mean().item()
        return 2 * d(fake, real) - d(fake, fake) - d(real, real)

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        return [opt_g, opt_d], []


if __name__ == "__main__":
    loader = DataLoader(TensorDataset(sample_ring(5120)), batch_size=128, shuffle=True)
    gan = RingGAN()
    trainer = L.Trainer(max_epochs=21, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(gan, loader)
    print(f"final energy distance {gan.energy_distance():.4f}")
