"""Segment round cells on a noisy background with a very small U-Net."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)

SIZE = 32


def make_cell_image():
    yy, xx = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), bool)
    for _ in range(np.random.randint(1, 5)):
        cy, cx = np.random.uniform(3, SIZE - 3, 2)
        ry, rx = np.random.uniform(2.5, 6, 2)
        mask |= ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
    img = 0.3 + 0.35 * mask + 0.15 * np.random.randn(SIZE, SIZE)
    return img.astype("float32"), mask.astype("float32")


class RandomFlip:
    def __call__(self, t):
        if random.random() < 0.5:
            t = torch.flip(t, dims=[-1])
        if random.random() < 0.5:
            t = torch.flip(t, dims=[-2])
        return t


class CellDataset(Dataset):
    def __init__(self, n, transform=None):
        self.samples = [make_cell_image() for _ in range(n)]
        self.transform = transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        img, mask = self.samples[i]
        img, mask = torch.from_numpy(img)[None], torch.from_numpy(mask)[None]
        if self.transform is not None:
            img = self.transform(img)
            mask = self.transform(mask)
        return img, mask


def double_conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = double_conv(1, 12), double_conv(12, 24)
        self.bottom = double_conv(24, 48)
        self.up2, self.up1 = double_conv(48 + 24, 24), double_conv(24 + 12, 12)
        self.head = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        c = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        c = self.up1(torch.cat([F.interpolate(c, scale_factor=2), a], 1))
        return self.head(c)


@torch.no_grad()
def mean_iou(model, loader):
    model.eval()
    inter = union = 0.0
    for img, mask in loader:
        pred = torch.sigmoid(model(img)) > 0.5
        inter += (pred & (mask > 0.5)).sum().item()
        union += (pred | (mask > 0.5)).sum().item()
    return inter / max(union, 1)


train_loader = DataLoader(CellDataset(240, RandomFlip()), batch_size=16, shuffle=True)
val_loader = DataLoader(CellDataset(100), batch_size=50)

net = TinyUNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    net.train()
    losses = []
    for img, mask in train_loader:
        loss = F.binary_cross_entropy_with_logits(net(img), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1:2d}  loss {np.mean(losses):.4f}  val IoU {mean_iou(net, val_loader):.4f}")
