import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.fc2(torch.nn.functional.gelu(self.fc1(self.norm(x))))


class ResidualRegressor(L.LightningModule):
    def __init__(self, n_features, width=32, depth=3, lr=2e-3):
        super().__init__()
        self.lr = lr
        self.stem = nn.Linear(n_features, width)
        self.blocks = [Block(width) for _ in range(depth)]
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_mse", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self(x), y), batch_size=len(x))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking and (self.current_epoch + 1) % 2 == 0:
            print(f"epoch {self.current_epoch + 1}: val_mse {self.trainer.callback_metrics['val_mse']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=1e-2)


class WaveData(L.LightningDataModule):
    def __init__(self, n=4000, batch_size=64):
        super().__init__()
        self.n = n
        self.batch_size = batch_size

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(0)
        x = torch.rand(self.n, 6, generator=g) * 2 - 1
        y = torch.sin(3 * x[:, 0]) * x[:, 1] + torch.cos(4 * x[:, 2]) + x[:, 3] * x[:, 4] - 0.5 * x[:, 5]
        y = y + 0.05 * torch.randn(self.n, generator=g)
        full = TensorDataset(x, y)
        self.train_set, self.val_set = random_split(full, [self.n - 800, 800], generator=g)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=200)


def main():
    L.seed_everything(0, verbose=False)
    model = ResidualRegressor(n_features=6)
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, datamodule=WaveData())
    print("final:", trainer.validate(model, datamodule=WaveData(), verbose=False))


main()
