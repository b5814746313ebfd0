"""Lightning module: does a DNA sequence hold both binding sites?"""
import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy

BASES = "ACGT"
LENGTH, DIM = 60, 12
SITE_A, SITE_B = "TATAAG", "GCCGCA"


def noisy(site, rng):
    s = list(site)
    if rng.random() < 0.3:
        s[rng.integers(len(s))] = BASES[rng.integers(4)]
    return "".join(s)


def make_sequences(n, seed):
    rng = np.random.default_rng(seed)
    x, y = [], []
    for _ in range(n):
        seq = "".join(rng.choice(list(BASES), LENGTH))
        kind = rng.integers(4)
        a, b = int(rng.integers(0, 24)), int(rng.integers(30, LENGTH - 6))
        if kind != 1:
            site = noisy(SITE_A, rng)
            seq = seq[:a] + site + seq[a + len(site):]
        if kind != 2:
            site = noisy(SITE_B, rng)
            seq = seq[:b] + site + seq[b + len(site):]
        x.append([BASES.index(c) for c in seq])
        y.append(float(kind in (0, 3)))
    return TensorDataset(torch.tensor(x), torch.tensor(y))


class SiteDetector(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(4, DIM)
        self.convs = [nn.Conv1d(DIM, 24, k, padding=k // 2) for k in (3, 7, 11)]
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Sequential(nn.Linear(72, 32), nn.ReLU(), nn.Linear(32, 1))
        self.val_acc = BinaryAccuracy()

    def forward(self, x):
        e = self.embed(x).transpose(1, 2)
        pooled = [F.relu(conv(e)).amax(dim=-1) for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, dim=1))).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.binary_cross_entropy_with_logits(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(torch.sigmoid(logits), y.int())
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, y))
        self.log("val_acc", self.val_acc)

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if "train_loss" in m:
            print(f"epoch {self.current_epoch}: train loss {m['train_loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(9)
    train_loader = DataLoader(make_sequences(4000, 1), batch_size=64, shuffle=True)
    val_loader = DataLoader(make_sequences(1000, 2), batch_size=250)
    model = SiteDetector()
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, train_loader, val_loader)
    result = trainer.validate(model, val_loader, verbose=False)[0]
    print(f"final: val loss {result['val_loss']:.4f} val accuracy {result['val_acc']:.4f}")
