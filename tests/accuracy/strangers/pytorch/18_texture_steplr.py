import numpy as np
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
gen = np.random.default_rng(4)


def textures(n):
    """stripes in four orientations on a 16x16 patch"""
    y = gen.integers(0, 4, n)
    angle = y * np.pi / 4 + gen.normal(0, 0.12, n)
    freq = gen.uniform(0.6, 1.4, n)
    phase = gen.uniform(0, 2 * np.pi, n)
    r, c = np.mgrid[:16, :16]
    arg = (np.cos(angle)[:, None, None] * c + np.sin(angle)[:, None, None] * r) * freq[:, None, None]
    x = np.sin(arg + phase[:, None, None]) + gen.normal(0, 1.5, (n, 16, 16))
    return torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y)


class TextureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2, stride=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1, stride=2), nn.ReLU(),
        )
        self.fc = nn.Linear(24 * 4 * 4, 4)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


train_loader = DataLoader(TensorDataset(*textures(2000)), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(*textures(600)), batch_size=200)

model = TextureNet()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
scheduler = StepLR(optimizer, step_size=4, gamma=0.3)

for epoch in range(1, 10):
    model.train()
    loss_sum = 0.0
    for images, target in train_loader:
        optimizer.zero_grad()
        output = model(images)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        loss_sum += loss.item()

    model.eval()
    correct = 0
    with torch.no_grad():
        for images, target in test_loader:
            correct += model(images).argmax(1).eq(target).sum().item()
    print("Epoch {:2d}  train loss {:.4f}  test acc {:.2f}%".format(
        epoch, loss_sum / len(train_loader), 100.0 * correct / len(test_loader.dataset)))
