"""A small GAN on a ring of eight Gaussians, with manual optimisation."""
import math

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(4)
NOISE = 8
angles = torch.arange(8) * 2 * math.pi / 8
CENTRES = 2.0 * torch.stack([angles.cos(), angles.sin()], 1)


def mlp(n_in, n_out, width=96):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, n_out))


class RingGAN(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = mlp(NOISE, 2)
        self.critic = mlp(2, 1)

    def sample(self, n):
        return self.generator(torch.randn(n, NOISE, device=self.device))

    def training_step(self, batch, batch_idx):
        real = batch[0]
        opt_g, opt_d = self.optimizers()

        # critic
        fake = self.sample(len(real)).detach()
        d_real, d_fake = self.critic(real), self.critic(fake)
        d_loss = 0.5 * (F.binary_cross_entropy_with_logits(d_real, torch.ones_like(d_real))
                        + F.binary_cross_entropy_with_logits(d_fake, torch.zeros_like(d_fake)))
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()

        # generator
        score = self.critic(self.sample(len(real)))
        g_loss = F.binary_cross_entropy_with_logits(score, torch.ones_like(score))
        self.manual_backward(g_loss)
        opt_g.step()

        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        if self.current_epoch % 10 == 9:
            m = self.trainer.callback_metrics
            near, modes = quality(self)
            print(f"epoch {self.current_epoch + 1:3d}  d {m['d_loss']:.3f}  g {m['g_loss']:.3f}  "
                  f"near a mode {near:.2f}  modes {modes}")

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.critic.parameters(), lr=self.hparams.lr, betas=(0.5, 0.999))
        return [opt_g, opt_d], []


@torch.no_grad()
def quality(gan, n=2000):
    """Share of samples within 0.3 of a centre, and how many centres are reached."""
    dist, which = torch.cdist(gan.sample(n), CENTRES).min(1)
    good = dist < 0.3
    counts = torch.bincount(which[good], minlength=8)
    return good.float().mean().item(), int((counts > 0.02 * n).sum())


points = CENTRES[torch.randint(0, 8, (8000,))] + 0.1 * torch.randn(8000, 2)
loader = DataLoader(TensorDataset(points), batch_size=200, shuffle=True, drop_last=True)

gan = RingGAN()
trainer = L.Trainer(max_epochs=50, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(gan, loader)
near, modes = quality(gan)
print(f"final: {near:.3f} of the samples near a mode, {modes} of 8 modes")
