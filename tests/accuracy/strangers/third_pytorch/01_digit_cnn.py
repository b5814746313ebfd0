"""Small CNN for noisy scans of handwritten digits (few examples, labelled by volunteers)."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

SEED = 7
EPOCHS = 30
BATCH_SIZE = 32
LR = 2e-3

torch.manual_seed(SEED)
np.random.seed(SEED)


def get_data():
    digits = load_digits()
    x = digits.images.astype("float32") / 16.0
    x += 0.2 * np.random.randn(*x.shape).astype("float32")  # cheap scanner
    y = digits.target
    x_tr, x_te, y_tr, y_te = train_test_split(
        x, y, train_size=500, stratify=y, random_state=SEED)
    # volunteers get about one label in seven wrong
    wrong = np.random.rand(len(y_tr)) < 0.15
    y_tr[wrong] = np.random.randint(0, 10, wrong.sum())
    make = lambda a, b: TensorDataset(torch.from_numpy(a)[:, None], torch.from_numpy(b).long())
    return make(x_tr, y_tr), make(x_te, y_te)


class DigitNet(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.drop = nn.Dropout(0.5)
        self.fc1 = nn.Linear(32 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, n_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = self.drop(x.flatten(1))
        x = self.drop(F.relu(self.fc1(x)))
        return self.fc2(x)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct, loss, n = 0, 0.0, 0
    for xb, yb in loader:
        out = model(xb)
        loss += F.cross_entropy(out, yb, reduction="sum").item()
        correct += (out.argmax(1) == yb).sum().item()
        n += len(yb)
    return loss / n, correct / n


def main():
    train_ds, test_ds = get_data()
    train_loader = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True)
    test_loader = DataLoader(test_ds, batch_size=256)

    model = DigitNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)

    model.train()
    for epoch in range(1, EPOCHS + 1):
        running = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(yb)
        val_loss, val_acc = evaluate(model, test_loader)
        if epoch % 5 == 0:
            print(f"epoch {epoch:3d}  train loss {running / len(train_ds):.4f}  "
                  f"test loss {val_loss:.4f}  test acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
