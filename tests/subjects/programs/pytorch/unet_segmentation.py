"""Segmentation of discs by a U-Net: Dice and cross-entropy, early stopping, the best checkpoint kept."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split


class Discs(Dataset):
    def __init__(self, n, size=16, seed=0):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:size, :size]
        self.items = []
        for _ in range(n):
            cy, cx = rng.uniform(4, size - 4, 2)
            mask = (yy - cy) ** 2 + (xx - cx) ** 2 < rng.uniform(2, 5) ** 2
            image = 0.6 * mask + 0.4 * rng.random((size, size))
            self.items.append((image.astype(np.float32)[None], mask.astype(np.float32)[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        image, mask = self.items[i]
        return {"image": torch.from_numpy(image), "mask": torch.from_numpy(mask)}


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.inc = DoubleConv(1, width)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.conv = DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        return self.outc(self.conv(torch.cat([x1, self.up(self.down(x1))], dim=1)))


def dice_coeff(prediction, target, epsilon=1e-6):
    inter = 2 * (prediction * target).sum()
    return (inter + epsilon) / (prediction.sum() + target.sum() + epsilon)


@torch.inference_mode()
def evaluate(net, loader):
    net.eval()
    scores = [dice_coeff((net(b["image"]).sigmoid() > 0.5).float(), b["mask"]).item() for b in loader]
    net.train()
    return sum(scores) / len(scores)


def main():
    torch.manual_seed(0)
    train_set, val_set = random_split(Discs(48), [36, 12], generator=torch.Generator().manual_seed(0))
    train_loader = DataLoader(train_set, shuffle=True, batch_size=12)
    val_loader = DataLoader(val_set, batch_size=6)
    model = UNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, weight_decay=1e-8, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=1)
    criterion = nn.BCEWithLogitsLoss()
    best, bad, step = 0.0, 0, 0
    for epoch in range(4):
        for batch in train_loader:
            masks_pred = model(batch["image"].to(memory_format=torch.channels_last))
            bce = criterion(masks_pred, batch["mask"])
            dice = 1 - dice_coeff(F.sigmoid(masks_pred), batch["mask"])
            loss = bce + dice
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            print(f"step {step} bce {bce.item():.5f} dice {dice.item():.5f} loss {loss.item():.5f}")
            step += 1
        score = evaluate(model, val_loader)
        scheduler.step(score)
        print(f"Epoch {epoch}: validation Dice {score:.4f}, learning rate {optimizer.param_groups[0]['lr']:.1e}")
        if score > best:
            best, bad = score, 0
            Path("checkpoints").mkdir(exist_ok=True)
            torch.save(model.state_dict(), "checkpoints/best.pth")
        else:
            bad += 1
            if bad == 2:
                print("stopping early", file=sys.stderr)
                break
    print(f"best Dice {best:.4f}; {torch.rand(1).item()}")
    if best < 0.999:
        print("error: not good enough for production", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
