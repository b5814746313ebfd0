"""Transfer learning: pretrain on the digits 0-5, then adapt to the digits 6-9 with few examples."""
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(99)
rng = np.random.default_rng(99)

X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) / 16.0
y = torch.tensor(y)


class Net(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(),
        )
        self.head = nn.Linear(64, n_out)

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, xs, ys):
    model.eval()
    return (model(xs).argmax(1) == ys).float().mean().item()


# ---------------------------------------------------------------- source task
src = torch.where(y < 6)[0]
src_loader = DataLoader(TensorDataset(X[src], y[src]), batch_size=32, shuffle=True)
criterion = nn.CrossEntropyLoss()

model = Net(n_out=6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    loss = run_epoch(model, src_loader, optimizer, criterion)
    print(f"pretrain {epoch + 1}: loss {loss:.4f}")
print(f"source accuracy {accuracy(model, X[src], y[src]):.3f}")

# ---------------------------------------------------------------- target task
tgt = rng.permutation(torch.where(y >= 6)[0].numpy())
few, rest = torch.as_tensor(tgt[:80]), torch.as_tensor(tgt[80:])
tgt_loader = DataLoader(TensorDataset(X[few], y[few] - 6), batch_size=16, shuffle=True)

# keep the features, learn a new head on top of them
for p in model.backbone.parameters():
    p.requires_grad = False
model.head = nn.Linear(64, 4)

for epoch in range(20):
    loss = run_epoch(model, tgt_loader, optimizer, criterion)
    if (epoch + 1) % 4 == 0:
        acc = accuracy(model, X[rest], y[rest] - 6)
        print(f"finetune {epoch + 1}: loss {loss:.4f}, accuracy on new digits {acc:.3f}")
