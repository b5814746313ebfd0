"""Three spiral arms, LightningModule with manual optimization (separate rates for body and head)."""
import math
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
import lightning as L
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")


def spirals(n_per_arm=600, arms=3, noise=0.12):
    xs, ys = [], []
    for k in range(arms):
        t = torch.sqrt(torch.rand(n_per_arm)) * 1.4 * math.pi
        angle = t + 2 * math.pi * k / arms
        pts = torch.stack([t * torch.cos(angle), t * torch.sin(angle)], dim=1)
        xs.append(pts + noise * torch.randn_like(pts))
        ys.append(torch.full((n_per_arm,), k))
    x, y = torch.cat(xs), torch.cat(ys)
    return (x - x.mean(0)) / x.std(0), y


class SpiralNet(L.LightningModule):
    def __init__(self, body_lr=0.05, head_lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.body = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, batch_idx):
        opt_body, opt_head = self.optimizers()
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.manual_backward(loss)
        opt_body.step()
        opt_head.step()
        self.log("train_loss", loss, on_epoch=True, on_step=False)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if (self.current_epoch + 1) % 5 == 0 and not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch + 1:3d}  val_loss {m['val_loss']:.4f}  val_acc {m['val_acc']:.4f}")

    def configure_optimizers(self):
        body = torch.optim.SGD(self.body.parameters(), lr=self.hparams.body_lr, momentum=0.9)
        head = torch.optim.SGD(self.head.parameters(), lr=self.hparams.head_lr, momentum=0.9)
        return [body, head]


if __name__ == "__main__":
    L.seed_everything(3)
    x, y = spirals()
    train_set, val_set = random_split(TensorDataset(x, y), [1400, 400])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=400)

    model = SpiralNet()
    trainer = L.Trainer(max_epochs=40, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, train_loader, val_loader)
    result = trainer.validate(model, val_loader, verbose=False)[0]
    print("final:", {k: round(v, 4) for k, v in result.items()})
