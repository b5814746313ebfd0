"""Predict a building's heating load (kWh/day) from weather and building data."""
import warnings
import torch
from torch import nn
import torch.nn.functional as F
import pytorch_lightning as pl
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
pl.seed_everything(17)


def simulate(n):
    area = 60 + 140 * torch.rand(n)
    year = 1950 + 70 * torch.rand(n)
    temp = -8 + 26 * torch.rand(n)
    wind = 12 * torch.rand(n)
    pressure = 1013 + 9 * torch.randn(n)
    people = torch.randint(1, 6, (n,)).float()
    u_value = 1.6 - 0.016 * (year - 1950)
    load = area * 0.012 * (19 - temp).clamp(min=0) * u_value * (1 + 0.03 * wind) + 2.5 * people
    load = load + 1.5 * torch.randn(n)
    return torch.stack([area, year, temp, wind, pressure, people], dim=1), load


class HeatingData(pl.LightningDataModule):
    def setup(self, stage):
        if hasattr(self, "train"):
            return
        X, y = simulate(4000)
        X_train, y_train = X[:3000], y[:3000]
        X_val, y_val = X[3000:3500], y[3000:3500]
        X_test, y_test = X[3500:], y[3500:]
        self.y_mean, self.y_std = y_train.mean(), y_train.std()
        mean, std = X_train.mean(0), X_train.std(0)
        X_train = (X_train - mean) / std
        self.train = TensorDataset(X_train, (y_train - self.y_mean) / self.y_std)
        self.val = TensorDataset(X_val, (y_val - self.y_mean) / self.y_std)
        self.test = TensorDataset(X_test, (y_test - self.y_mean) / self.y_std)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=250)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=250)


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_mse", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mse", F.mse_loss(self(x), y))

    def test_step(self, batch, batch_idx):
        x, y = batch
        kwh = (self(x) - y) * self.trainer.datamodule.y_std
        self.log_dict({"test_mae_kwh": kwh.abs().mean(), "test_rmse_kwh": kwh.pow(2).mean().sqrt()})

    def on_train_epoch_end(self):
        if (self.current_epoch + 1) % 5 == 0:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch + 1}: train_mse={m['train_mse']:.4f} val_mse={m['val_mse']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1e-4)


dm = HeatingData()
model = Regressor()
trainer = pl.Trainer(max_epochs=25, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False)
trainer.fit(model, datamodule=dm)
trainer.test(model, datamodule=dm)
