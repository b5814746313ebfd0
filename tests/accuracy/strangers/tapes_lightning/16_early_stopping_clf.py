import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, EarlyStopping
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
L.seed_everything(8, verbose=False)


def spirals(n_per_arm, arms=4, noise=0.14, seed=0):
    g = torch.Generator().manual_seed(seed)
    xs, ys = [], []
    for k in range(arms):
        r = torch.linspace(0.1, 1.0, n_per_arm)
        phi = 4.5 * r + k * 2 * torch.pi / arms + noise * torch.randn(n_per_arm, generator=g)
        xs.append(torch.stack([r * phi.cos(), r * phi.sin()], 1))
        ys.append(torch.full((n_per_arm,), k))
    return 2 * torch.cat(xs), torch.cat(ys)


class SpiralNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 64), nn.ReLU(),
            nn.Linear(64, 64), nn.ReLU(),
            nn.Linear(64, 4),
        )

    def forward(self, x):
        return self.net(x)

    def _shared(self, batch, name):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        acc = (logits.argmax(dim=1) == y).float().mean()
        self.log_dict({f"{name}_loss": loss, f"{name}_acc": acc}, on_step=False, on_epoch=True)
        return loss

    def training_step(self, batch, batch_idx):
        return self._shared(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._shared(batch, "val")

    def test_step(self, batch, batch_idx):
        self._shared(batch, "test")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


class PrintMetrics(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        print(f"epoch {trainer.current_epoch:2d}",
              {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})


train_dl = DataLoader(TensorDataset(*spirals(500, seed=1)), batch_size=64, shuffle=True)
val_dl = DataLoader(TensorDataset(*spirals(150, seed=2)), batch_size=300)
test_dl = DataLoader(TensorDataset(*spirals(300, seed=3)), batch_size=300)

stopper = EarlyStopping(monitor="val_acc", patience=5)
trainer = L.Trainer(
    max_epochs=30,
    accelerator="cpu",
    callbacks=[PrintMetrics(), stopper],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = SpiralNet()
trainer.fit(model, train_dl, val_dl)
print("stopped after epoch", stopper.stopped_epoch or trainer.current_epoch)
print(trainer.test(model, test_dl, verbose=False))
