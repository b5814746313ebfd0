import copy

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

TRAINER_ARGS = dict(accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)


def make_blobs(n, seed, n_classes=12, dim=10):
    c = torch.Generator().manual_seed(500)
    centers = 1.3 * torch.randn(n_classes, 2, dim, generator=c)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_classes, (n,), generator=g)
    part = torch.randint(0, 2, (n,), generator=g)
    return centers[y, part] + torch.randn(n, dim, generator=g), y


class Base(L.LightningModule):
    name = "model"

    def forward(self, x):
        return self.net(x)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_nll", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        if self.current_epoch % 3 == 2:
            print(f"{self.name} epoch {self.current_epoch + 1}: loss {m['loss']:.4f} "
                  f"val_nll {m['val_nll']:.4f} val_acc {m['val_acc']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.net.parameters(), lr=2e-3)


class Teacher(Base):
    name = "teacher"

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 12))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss


class Student(Base):
    name = "student"

    def __init__(self, teacher, temperature=3.0, alpha=0.9):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 12))
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)
        self.T = temperature
        self.alpha = alpha

    def on_train_epoch_start(self):
        self.teacher.eval()

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        with torch.no_grad():
            soft_targets = F.softmax(self.teacher.net(x) / self.T, dim=1)
        soft_preds = F.softmax(logits / self.T, dim=1)
        distill = F.kl_div(soft_preds, soft_targets, reduction="batchmean") * self.T ** 2
        loss = self.alpha * distill + (1 - self.alpha) * F.cross_entropy(logits, y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss


L.seed_everything(6, verbose=False)
train_loader = DataLoader(TensorDataset(*make_blobs(4000, 1)), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(*make_blobs(2000, 2)), batch_size=500)

teacher = Teacher()
L.Trainer(max_epochs=6, **TRAINER_ARGS).fit(teacher, train_loader, val_loader)
student = Student(teacher)
L.Trainer(max_epochs=12, **TRAINER_ARGS).fit(student, train_loader, val_loader)
