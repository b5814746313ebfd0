"""Batch-normalised CNN on the digits; a per-image report at the end."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class BNNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, 24),
            nn.MaxPool2d(2),
            conv_block(24, 48),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(48 * 4, classes),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def data():
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(d.target)
    ia, ib = train_test_split(range(len(y)), test_size=0.2, random_state=0, stratify=d.target)
    return TensorDataset(x[ia], y[ia]), TensorDataset(x[ib], y[ib])


def validate(model, loader):
    correct, count, loss_sum = 0, 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss_sum += nn.functional.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(dim=1) == y).sum().item()
            count += y.numel()
    return loss_sum / count, correct / count


def main():
    train_set, val_set = data()
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=1)
    model = BNNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(10):
        model.train()
        seen, total, hits = 0, 0.0, 0
        for x, y in train_loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            seen += len(y)
        v_loss, v_acc = validate(model, val_loader)
        print(f"epoch {epoch:2d}  train {total / seen:.4f}/{hits / seen:.3f}  val {v_loss:.4f}/{v_acc:.3f}")


if __name__ == "__main__":
    main()
