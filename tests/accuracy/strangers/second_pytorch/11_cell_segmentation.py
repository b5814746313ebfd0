"""Binary segmentation of bright cells in noisy microscopy-like images."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(2)
np.random.seed(2)
SIZE = 32


def make_image():
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    mask = np.zeros((SIZE, SIZE), dtype=bool)
    for _ in range(np.random.randint(2, 5)):
        cy, cx = np.random.uniform(3, SIZE - 3, 2)
        ry, rx = np.random.uniform(3, 7, 2)
        mask |= ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
    img = 0.3 + 0.4 * mask + np.random.normal(0, 0.2, mask.shape)
    return img.astype(np.float32), mask.astype(np.float32)


class CellDataset(Dataset):
    def __init__(self, n, augment=False):
        pairs = [make_image() for _ in range(n)]
        self.images = torch.tensor(np.stack([p[0] for p in pairs])).unsqueeze(1)
        self.masks = torch.tensor(np.stack([p[1] for p in pairs])).unsqueeze(1)
        self.images = (self.images - 0.4) / 0.3
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, mask = self.images[i], self.masks[i]
        if self.augment and torch.rand(1).item() < 0.5:
            image = torch.flip(image, dims=[-1])
        return image, mask


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class MiniUNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.d1 = block(1, base)
        self.d2 = block(base, 2 * base)
        self.mid = block(2 * base, 4 * base)
        self.u2 = block(6 * base, 2 * base)
        self.u1 = block(3 * base, base)
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        a = self.u1(torch.cat([F.interpolate(b, scale_factor=2), a], 1))
        return self.out(a)


def iou(model, loader):
    model.eval()
    inter = union = 0.0
    with torch.no_grad():
        for x, y in loader:
            p = model(x) > 0
            inter += (p & (y > 0)).sum().item()
            union += (p | (y > 0)).sum().item()
    return inter / union


train_dl = DataLoader(CellDataset(600, augment=True), batch_size=20, shuffle=True)
val_dl = DataLoader(CellDataset(150), batch_size=50)
net = MiniUNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(12):
    net.train()
    losses = []
    for x, y in train_dl:
        opt.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    print("epoch %02d  loss %.4f  val IoU %.4f" % (epoch + 1, np.mean(losses), iou(net, val_dl)))
