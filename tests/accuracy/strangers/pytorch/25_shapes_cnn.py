import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader

HW = 20
CLASSES = ["disc", "square", "ring", "cross"]


def draw(kind, rng):
    """RGB picture, uint8, height x width x channel"""
    img = rng.integers(0, 90, (HW, HW, 3)).astype(np.int32)
    color = rng.integers(110, 256, 3)
    cy, cx = rng.integers(7, HW - 7, 2)
    r = rng.integers(4, 7)
    yy, xx = np.mgrid[:HW, :HW]
    dy, dx = np.abs(yy - cy), np.abs(xx - cx)
    dist = np.sqrt(dy ** 2 + dx ** 2)
    area = {
        "disc": dist <= r,
        "square": np.maximum(dy, dx) <= r - 1,
        "ring": (dist <= r) & (dist > r - 2),
        "cross": ((dy <= 1) | (dx <= 1)) & (np.maximum(dy, dx) <= r),
    }[kind]
    img[area] = color + rng.integers(-20, 21, (area.sum(), 3))
    return img.clip(0, 255).astype(np.uint8)


class ShapeDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(CLASSES), n)
        self.images = np.stack([draw(CLASSES[k], rng) for k in self.labels])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        img = torch.from_numpy(self.images[idx]).float().div(255.0)
        img = img.reshape(3, HW, HW)
        return (img - 0.35) / 0.25, int(self.labels[idx])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, cin = [], 3
        for cout in (12, 24):
            layers += [nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)]
            cin = cout
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(24 * 5 * 5, len(CLASSES))

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def main():
    torch.manual_seed(2)
    train_loader = DataLoader(ShapeDataset(1200, 0), batch_size=40, shuffle=True)
    test_loader = DataLoader(ShapeDataset(400, 1), batch_size=100)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        model.train()
        train_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            train_loss += loss.item()
        scheduler.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in test_loader:
                hits += (model(x).argmax(1) == y).sum().item()
        print(f"epoch {epoch + 1} loss {train_loss / len(train_loader):.4f} test acc {hits / 400:.4f}")


if __name__ == "__main__":
    main()
