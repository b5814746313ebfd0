"""Species from leaf measurements. The measurement campaign delivered one table per species."""
import warnings

import numpy as np
import torch
import torch.nn as nn
import lightning as L
from lightning.pytorch.callbacks import Callback
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

warnings.filterwarnings("ignore")
N_SPECIES, N_FEATURES = 6, 12


def species_table(species, n, rng):
    centers = np.random.default_rng(99).normal(0, 1.1, size=(N_SPECIES, 2, N_FEATURES))
    variety = rng.integers(0, 2, n)
    return centers[species, variety] + rng.normal(0, 1.0, size=(n, N_FEATURES))


class LeafData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        rng = np.random.default_rng(1)
        tables = [species_table(s, 1500, rng) for s in range(N_SPECIES)]
        train = [t[:1200] for t in tables]
        val = [t[1200:] for t in tables]
        stacked = np.concatenate(train)
        mean, std = stacked.mean(0), stacked.std(0)

        def to_ds(parts):
            return ConcatDataset([
                TensorDataset(torch.tensor((p - mean) / std, dtype=torch.float32),
                              torch.full((len(p),), s)) for s, p in enumerate(parts)])

        self.train_set, self.val_set = to_ds(train), to_ds(val)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=200)


class SpeciesClassifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(N_FEATURES, 48), nn.ReLU(), nn.Linear(48, N_SPECIES))
        self.loss = nn.CrossEntropyLoss()
        self.acc = MulticlassAccuracy(N_SPECIES, average="micro")

    def training_step(self, batch, idx):
        x, y = batch
        loss = self.loss(self.net(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, idx):
        x, y = batch
        out = self.net(x)
        self.acc(out, y)
        self.log("val_loss", self.loss(out, y))
        self.log("val_acc", self.acc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


class Printer(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
        print(trainer.current_epoch, m)


L.seed_everything(1, verbose=False)
trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, callbacks=[Printer()])
model = SpeciesClassifier()
data = LeafData()
trainer.fit(model, datamodule=data)
print("validation:", trainer.validate(model, datamodule=data, verbose=False))
