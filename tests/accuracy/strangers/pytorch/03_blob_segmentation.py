"""Segment bright blobs in noisy images with a tiny U-Net."""
import random
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

SIZE = 32


def make_sample(rng):
    img = rng.normal(0.0, 0.35, (SIZE, SIZE)).astype(np.float32)
    mask = np.zeros((SIZE, SIZE), dtype=np.float32)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.integers(4, SIZE - 4, 2)
        a, b = rng.uniform(3, 7, 2)
        blob = ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 <= 1
        mask[blob] = 1.0
        img[blob] += rng.uniform(0.6, 1.2)
    return img, mask


class BlobDataset(Dataset):
    def __init__(self, n, seed, train):
        rng = np.random.default_rng(seed)
        self.items = [make_sample(rng) for _ in range(n)]
        self.train = train

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, mask = self.items[i]
        img = torch.from_numpy(img)[None]
        mask = torch.from_numpy(mask)[None]
        if self.train:
            if random.random() < 0.5:
                img = torch.flip(img, dims=[2])
            if random.random() < 0.5:
                img = torch.flip(img, dims=[1])
        return img, mask


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class TinyUNet(nn.Module):
    def __init__(self, c=10):
        super().__init__()
        self.enc1 = block(1, c)
        self.enc2 = block(c, 2 * c)
        self.mid = block(2 * c, 2 * c)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.dec2 = block(4 * c, c)
        self.dec1 = block(2 * c, c)
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        m = self.mid(self.pool(e2))
        d2 = self.dec2(torch.cat([self.up(m), e2], 1))
        d1 = self.dec1(torch.cat([self.up(d2), e1], 1))
        return self.head(d1)


def iou(model, loader):
    model.eval()
    inter = union = 0.0
    with torch.no_grad():
        for img, mask in loader:
            pred = (torch.sigmoid(model(img)) > 0.5).float()
            inter += (pred * mask).sum().item()
            union += ((pred + mask) > 0).float().sum().item()
    return inter / union


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    train_dl = DataLoader(BlobDataset(320, 1, True), batch_size=16, shuffle=True)
    val_dl = DataLoader(BlobDataset(120, 2, False), batch_size=60)
    net = TinyUNet()
    optim = torch.optim.Adam(net.parameters(), lr=2e-3)
    bce = nn.BCEWithLogitsLoss()
    for ep in range(8):
        net.train()
        losses = []
        for img, mask in train_dl:
            optim.zero_grad()
            loss = bce(net(img), mask)
            loss.backward()
            optim.step()
            losses.append(loss.item())
        print("epoch %d  loss %.4f  val IoU %.4f" % (ep + 1, np.mean(losses), iou(net, val_dl)))
