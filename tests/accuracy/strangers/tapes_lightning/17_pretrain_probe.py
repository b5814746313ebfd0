import os
import tempfile

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

SIDE = 12


def make_encoder():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 9, 24),
    )


def render(n, seed):
    """Bars of 6 orientations at random places, with noise."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 6, (n,), generator=g)
    angle = label * torch.pi / 6
    cx, cy = torch.rand(2, n, 1, 1, generator=g) * 4 + SIDE / 2 - 2
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    dist = (xx - cx) * angle.sin().view(-1, 1, 1) - (yy - cy) * angle.cos().view(-1, 1, 1)
    img = torch.exp(-dist ** 2 / 1.5) + 0.25 * torch.randn(n, SIDE, SIDE, generator=g)
    return img.unsqueeze(1), label


class Pretrain(L.LightningModule):
    """Predict the rotation angle of a bar (as a point on the circle)."""

    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.head = nn.Linear(24, 2)

    def training_step(self, batch, _):
        x, y = batch
        target = torch.stack([(y * torch.pi / 3).cos(), (y * torch.pi / 3).sin()], dim=1)
        loss = F.mse_loss(self.head(F.relu(self.encoder(x))), target)
        self.log("pretrain_loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


class Probe(L.LightningModule):
    def __init__(self, ckpt_path):
        super().__init__()
        self.encoder = make_encoder()
        state = torch.load(ckpt_path, weights_only=True)
        weights = {k: v for k, v in state.items() if k.startswith("encoder.")}
        self.encoder.load_state_dict(weights, strict=False)
        for p in self.encoder.parameters():
            p.requires_grad = False
        self.classifier = nn.Linear(24, 6)

    def forward(self, x):
        with torch.no_grad():
            feats = F.relu(self.encoder(x))
        return self.classifier(feats)

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        if self.current_epoch % 5 == 4:
            print(f"probe epoch {self.current_epoch + 1}: val_acc {self.trainer.callback_metrics['val_acc']:.4f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.classifier.parameters(), lr=1e-2)


def trainer(epochs):
    return L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False)


def loader(n, seed, train):
    return DataLoader(TensorDataset(*render(n, seed)), batch_size=64 if train else 500, shuffle=train)


L.seed_everything(4, verbose=False)
pre = Pretrain()
t = trainer(8)
t.fit(pre, loader(3000, 0, True))
print("pretraining loss", round(t.callback_metrics["pretrain_loss"].item(), 4))
path = os.path.join(tempfile.mkdtemp(), "pretrained.pt")
torch.save(pre.state_dict(), path)

probe = Probe(path)
t = trainer(20)
t.fit(probe, loader(400, 1, True), loader(1000, 2, False))
print("final val_acc", round(t.callback_metrics["val_acc"].item(), 4))
