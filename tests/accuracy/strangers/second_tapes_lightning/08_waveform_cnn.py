import logging
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import pytorch_lightning as pl

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

CLASSES = ["sine", "square", "saw", "triangle"]


def make_waves(n, length=128, seed=0):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, length)
    X = np.empty((n, 1, length), dtype=np.float32)
    y = rng.integers(0, len(CLASSES), n)
    for i, c in enumerate(y):
        phase = rng.uniform(2, 6) * t + rng.uniform()
        frac = phase % 1.0
        wave = [np.sin(2 * np.pi * frac), np.sign(frac - 0.5), 2 * frac - 1, 4 * np.abs(frac - 0.5) - 1][c]
        X[i, 0] = wave + rng.normal(0, 0.35, length)
    X = (X - X.mean(axis=2, keepdims=True)) / X.std(axis=2, keepdims=True)
    return torch.from_numpy(X), torch.from_numpy(y)


class WaveNet1D(pl.LightningModule):
    def __init__(self, lr=0.05):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 9, padding=4, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 32, 5, padding=2, bias=False), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, len(CLASSES)),
        )
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, _):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        out = self(x)
        self.log_dict({"val_loss": self.criterion(out, y), "val_acc": (out.argmax(-1) == y).float().mean()})

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        if self.current_epoch % 3 == 0:
            print(f"Epoch {self.current_epoch:2d} loss={m['loss']:.3f} "
                  f"val_loss={m['val_loss']:.3f} val_acc={m['val_acc']:.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


pl.seed_everything(42)
train = TensorDataset(*make_waves(2400, seed=1))
val = TensorDataset(*make_waves(600, seed=2))
test = TensorDataset(*make_waves(600, seed=3))

model = WaveNet1D()
trainer = pl.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False)
trainer.fit(model, DataLoader(train, batch_size=64, shuffle=True), DataLoader(val, batch_size=200))

model.eval()
with torch.no_grad():
    pred = model(test.tensors[0]).argmax(-1)
acc = (pred == test.tensors[1]).float().mean().item()
print(f"Test accuracy: {acc:.4f}")
for i, name in enumerate(CLASSES):
    mask = test.tensors[1] == i
    print(f"  {name:9s} {(pred[mask] == i).float().mean().item():.3f}")
