"""Segment round cells on a noisy background with a small U-Net."""
import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(8)
SIZE = 32


def cells(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    mask = torch.zeros(n, SIZE, SIZE, dtype=torch.bool)
    for _ in range(3):
        c = SIZE * torch.rand(n, 2)
        r = 3 + 4 * torch.rand(n)
        mask |= (xx - c[:, 0, None, None]) ** 2 + (yy - c[:, 1, None, None]) ** 2 < r[:, None, None] ** 2
    shade = 90 + 60 * torch.rand(n, 1, 1) + 1.5 * xx * torch.randn(n, 1, 1)
    img = shade + 18 * mask + 22 * torch.randn(n, SIZE, SIZE)
    return img.unsqueeze(1), mask.unsqueeze(1).float()


def block(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(),
        nn.Conv2d(n_out, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())


class UNet(L.LightningModule):
    def __init__(self, width=10):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)
        self.d1, self.d2, self.mid = block(1, width), block(width, 2 * width), block(2 * width, 2 * width)
        self.u2, self.u1 = block(4 * width, width), block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)
        self.down = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, x):
        a = self.d1(self.norm(x))
        b = self.d2(self.down(a))
        c = self.mid(self.down(b))
        x = self.u2(torch.cat([self.up(c), b], 1))
        x = self.u1(torch.cat([self.up(x), a], 1))
        return self.head(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        p = (self(x) > 0).float()
        inter, union = (p * y).sum((1, 2, 3)), ((p + y) > 0).float().sum((1, 2, 3))
        self.log("val_iou", ((inter + 1) / (union + 1)).mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch:2d} loss {m['loss']:.4f} val_iou {m['val_iou']:.4f}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


class Preview(Callback):
    """Show at the start of each epoch how one sample is segmented."""

    def __init__(self, image):
        self.image = image

    def on_train_epoch_start(self, trainer, pl_module):
        pl_module.eval()
        with torch.no_grad():
            area = (pl_module(self.image) > 0).float().mean().item()
        print(f"preview: {100 * area:.1f}% of the sample marked as cell")


train, val = cells(300), cells(150)
trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                    callbacks=[Preview(val[0][:1])],
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(UNet(), DataLoader(TensorDataset(*train), batch_size=20, shuffle=True),
            DataLoader(TensorDataset(*val), batch_size=50))
