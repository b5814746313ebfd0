"""Forecast the next day of an hourly electricity load with residual MLP blocks."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(17)
BACK, AHEAD = 96, 24


def load_curve(hours):
    t = torch.arange(hours, dtype=torch.float32)
    day, week = 2 * torch.pi * t / 24, 2 * torch.pi * t / 168
    weather = torch.zeros(hours)
    for i in range(1, hours):
        weather[i] = 0.98 * weather[i - 1] + 0.1 * torch.randn(())
    daily = (1 + 0.4 * torch.sin(week)) * torch.sin(day - 1.2) + 0.4 * torch.sin(2 * day)
    return 50 + 9 * daily + 4 * weather + 1.0 * torch.randn(hours)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(BACK, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.backcast = nn.Linear(width, BACK)
        self.forecast = nn.Linear(width, AHEAD)

    def forward(self, x):
        h = self.body(x)
        return x - self.backcast(h), self.forecast(h)


class Forecaster(L.LightningModule):
    def __init__(self, blocks=3, width=64, max_lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))

    def forward(self, x):
        total = 0.0
        for block in self.blocks:
            x, part = block(x)
            total = total + part
        return total

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_mse", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self(x), y))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d}  train mse {m['train_mse']:.4f}  val mse {m['val_mse']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-5)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=self.hparams.max_lr,
            total_steps=int(self.trainer.estimated_stepping_batches),
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler}}


series = load_curve(6000)
series = (series - series[:4800].mean()) / series[:4800].std()
windows = series.unfold(0, BACK + AHEAD, 1)
x, y = windows[:, :BACK], windows[:, BACK:]
train = TensorDataset(x[:4680], y[:4680])
val = TensorDataset(x[4800:], y[4800:])

trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                    gradient_clip_val=1.0, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Forecaster(), DataLoader(train, batch_size=64, shuffle=True),
            DataLoader(val, batch_size=256))
