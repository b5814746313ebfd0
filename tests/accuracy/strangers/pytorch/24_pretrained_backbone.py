import os
import tempfile
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(),
    )


class DigitClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_backbone()
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.encoder(x))


class ParityClassifier(nn.Module):
    """odd or even, few labels; uses the features of the digit classifier"""

    def __init__(self, ckpt=None):
        super().__init__()
        self.backbone = make_backbone()
        self.classifier = nn.Linear(64, 2)
        if ckpt is not None:
            state = torch.load(ckpt)
            self.load_state_dict(state, strict=False)
            print("loaded weights from", os.path.basename(ckpt))

    def forward(self, x):
        return self.classifier(self.backbone(x))


def fit(model, x, y, epochs, lr, batch_size, x_val, y_val, name, every):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % every == 0:
            model.eval()
            with torch.no_grad():
                out = model(x_val)
                acc = (out.argmax(1) == y_val).float().mean().item()
                vl = F.cross_entropy(out, y_val).item()
            print(f"{name} {epoch:2d}: loss {total / len(x):.4f} val loss {vl:.4f} acc {acc:.4f}")


def main():
    torch.manual_seed(12)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
    y = torch.tensor(d.target)
    perm = torch.randperm(len(x))
    x, y = x[perm], y[perm]
    pre, few, val = slice(0, 1100), slice(1100, 1180), slice(1180, None)

    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "digits_cnn.pt")
        source = DigitClassifier()
        fit(source, x[pre], y[pre], 10, 1.5e-3, 50, x[val], y[val], "digits", 2)
        torch.save(source.state_dict(), path)
        model = ParityClassifier(path)

    parity = y % 2
    fit(model, x[few], parity[few], 12, 8e-4, 16, x[val], parity[val], "parity", 3)


if __name__ == "__main__":
    main()
