"""Fit an image with a coordinate network (Fourier features + MLP)."""
import math

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)
SIZE = 64


def target_image():
    v, u = torch.meshgrid(torch.linspace(0, 1, SIZE), torch.linspace(0, 1, SIZE), indexing="ij")
    img = 0.5 + 0.25 * torch.sin(14 * u + 5 * v) * torch.cos(9 * v)
    img = img + 0.2 * (((u - 0.6) ** 2 + (v - 0.4) ** 2).sqrt() < 0.2).float()
    img = img - 0.15 * ((u > 0.1) & (u < 0.3) & (v > 0.6) & (v < 0.9)).float()
    return torch.stack([u, v], -1).reshape(-1, 2), img.reshape(-1, 1)


class FourierFeatures(nn.Module):
    def __init__(self, n=64, scale=4.0):
        super().__init__()
        self.register_buffer("freq", torch.randn(2, n) * scale)

    def forward(self, x):
        proj = 2 * math.pi * x @ self.freq
        return torch.cat([proj.sin(), proj.cos()], dim=-1)


class ImageField(L.LightningModule):
    def __init__(self, width=128, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            FourierFeatures(), nn.Linear(128, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        if self.current_epoch % 10 == 9:
            mse = float(self.trainer.callback_metrics["train_loss"])
            print(f"epoch {self.current_epoch + 1:3d}  loss {mse:.6f}")

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return [opt], [sched]


coords, values = target_image()
loader = DataLoader(TensorDataset(coords, values), batch_size=512, shuffle=True)
model = ImageField()
trainer = L.Trainer(
    max_epochs=60,
    accelerator="cpu",
    precision="bf16-true",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, loader)

model.float().eval()
with torch.no_grad():
    mse = nn.functional.mse_loss(model(coords), values).item()
print(f"mse {mse:.6f}  psnr {-10 * math.log10(mse):.2f} dB")
