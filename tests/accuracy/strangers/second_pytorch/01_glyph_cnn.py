"""Recognise 36 hand-drawn style glyphs (synthetic) with a small CNN."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

N_CLASSES = 36
PER_CLASS_TRAIN, PER_CLASS_TEST = 120, 30
EPOCHS = 8


def make_templates(n):
    coarse = (rng.random((n, 5, 5)) > 0.5).astype(np.float32)
    return coarse.repeat(3, axis=1).repeat(3, axis=2)          # 15 x 15


def draw(template):
    canvas = np.zeros((20, 20), dtype=np.float32)
    dy, dx = rng.integers(1, 5, size=2)
    canvas[dy:dy + 15, dx:dx + 15] = template * rng.uniform(0.7, 1.0)
    canvas += rng.normal(0, 0.5, canvas.shape)
    return canvas


def make_set(templates, per_class):
    xs = np.stack([draw(t) for t in templates for _ in range(per_class)])
    ys = np.repeat(np.arange(len(templates)), per_class)
    return torch.tensor(xs, dtype=torch.float32).unsqueeze(1), torch.tensor(ys)


class GlyphNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 5 * 5, 128)
        self.fc2 = nn.Linear(128, n_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    return correct / total


templates = make_templates(N_CLASSES)
x_train, y_train = make_set(templates, PER_CLASS_TRAIN)
x_test, y_test = make_set(templates, PER_CLASS_TEST)
mean, std = x_train.mean(), x_train.std()
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std

train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=256)

model = GlyphNet(N_CLASSES)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * y.size(0)
    acc = evaluate(model, test_loader)
    print(f"Epoch {epoch + 1:2d}/{EPOCHS}  loss={running / len(y_train):.4f}  test acc={acc:.4f}")

print(f"Final test accuracy: {evaluate(model, test_loader):.4f}")
