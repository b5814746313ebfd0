"""Locate the head of a beetle in small grey images (keypoint regression)."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

L.seed_everything(12)
SIZE = 32


def draw(n, gen):
    """Images with an elongated body and a small bright head at one end."""
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    centre = 10 + 12 * torch.rand(n, 2, generator=gen)
    angle = 6.2832 * torch.rand(n, generator=gen)
    step = torch.stack([angle.cos(), angle.sin()], 1)
    img = 0.15 * torch.rand(n, SIZE, SIZE, generator=gen)
    for k, (offset, radius, tone) in enumerate([(-3, 3.0, 0.5), (0, 3.0, 0.5), (5, 1.8, 0.9)]):
        p = centre + offset * step
        d2 = (xx - p[:, 0, None, None]) ** 2 + (yy - p[:, 1, None, None]) ** 2
        img = img + tone * torch.exp(-d2 / (2 * radius ** 2))
    head = (centre + 5 * step) / (SIZE - 1)
    return img.unsqueeze(1).clamp(0, 1.2), head


class Beetles(Dataset):
    def __init__(self, n, seed, augment=False):
        self.images, self.points = draw(n, torch.Generator().manual_seed(seed))
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img, point = self.images[i], self.points[i].clone()
        if self.augment:
            if torch.rand(()) < 0.5:
                img = img.flip(-1)
            img = img + 0.03 * torch.randn_like(img)
        return img, point


class HeadFinder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 24, 3, padding=1), nn.ReLU())
        self.regress = nn.Sequential(
            nn.Flatten(), nn.Linear(24 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.regress(self.features(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.smooth_l1_loss(self(x), y, beta=0.1)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        err = (self(x) - y).norm(dim=1).mean() * (SIZE - 1)
        self.log("val_pixels", err)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d}  train loss {m['train_loss']:.4f}  "
              f"val error {m['val_pixels']:.2f} px")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1e-4)


train = DataLoader(Beetles(1500, seed=1, augment=True), batch_size=50, shuffle=True)
val = DataLoader(Beetles(400, seed=2), batch_size=100)

trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(HeadFinder(), train, val)
