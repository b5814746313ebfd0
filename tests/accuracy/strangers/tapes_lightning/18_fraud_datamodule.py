import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


def make_transactions(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    score = 1.1 * x[:, 0] + 0.9 * x[:, 1] * x[:, 2] - 0.8 * x[:, 3] + 0.5 * x[:, 4] ** 2
    score = score + 1.3 * torch.randn(n, generator=g)
    return x, (score > 3.2).float()


def oversample(x, y, generator):
    pos, neg = torch.where(y == 1)[0], torch.where(y == 0)[0]
    extra = pos[torch.randint(len(pos), (len(neg) - len(pos),), generator=generator)]
    keep = torch.cat([neg, pos, extra])
    return x[keep], y[keep]


class FraudData(L.LightningDataModule):
    def __init__(self, batch_size=64, val_fraction=0.25):
        super().__init__()
        self.batch_size = batch_size
        self.val_fraction = val_fraction

    def setup(self, stage=None):
        g = torch.Generator().manual_seed(10)
        x, y = make_transactions(2000, seed=10)
        x, y = oversample(x, y, g)
        perm = torch.randperm(len(x), generator=g)
        n_val = int(self.val_fraction * len(x))
        val_idx, train_idx = perm[:n_val], perm[n_val:]
        self.val_set = TensorDataset(x[val_idx], y[val_idx])
        self.train_set = TensorDataset(x[train_idx], y[train_idx])
        self.test_set = TensorDataset(*make_transactions(6000, seed=11))

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=1000)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=1000)


class FraudModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Dropout(0.3), nn.Linear(48, 1))
        self.collected = []

    def forward(self, x):
        return self.net(x).squeeze(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.binary_cross_entropy_with_logits(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.collected.append(torch.stack([(self(x) > 0).float(), y]))

    test_step = validation_step

    def _report(self, name):
        pred, y = torch.cat(self.collected, dim=1)
        self.collected.clear()
        tpr = pred[y == 1].mean()
        tnr = 1 - pred[y == 0].mean()
        self.log(name, 0.5 * (tpr + tnr))

    def on_validation_epoch_end(self):
        self._report("val_bal_acc")

    def on_test_epoch_end(self):
        self._report("test_bal_acc")

    def on_train_epoch_end(self):
        if self.current_epoch % 3 == 2:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch + 1}: train loss {m['train_loss']:.4f}, "
                  f"val balanced acc {m['val_bal_acc']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=0.05)


L.seed_everything(10, verbose=False)
dm, model = FraudData(), FraudModel()
trainer = L.Trainer(max_epochs=18, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
trainer.fit(model, datamodule=dm)
print("test:", trainer.test(model, datamodule=dm, verbose=False))
