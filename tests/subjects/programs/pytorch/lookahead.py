"""Regression of diabetes by Lookahead around Adam: every five updates, slow weights go half of the way."""

from collections import defaultdict

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset, random_split


class Lookahead:
    """No optimizer of PyTorch's, but used like one."""

    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.param_groups = optimizer.param_groups
        self.state = defaultdict(dict)
        for group in self.param_groups:
            group["counter"] = 0

    def update(self, group):
        for fast in group["params"]:
            state = self.state[fast]
            if "slow_param" not in state:
                state["slow_param"] = torch.zeros_like(fast.data)
                state["slow_param"].copy_(fast.data)
            slow = state["slow_param"]
            slow += (fast.data - slow) * self.alpha
            fast.data.copy_(slow)

    def step(self, closure=None):
        loss = self.optimizer.step(closure)
        for group in self.param_groups:
            if group["counter"] == 0:
                self.update(group)
            group["counter"] = (group["counter"] + 1) % self.k
        return loss

    def zero_grad(self):
        self.optimizer.zero_grad()

    def state_dict(self):
        slow = [self.state[p]["slow_param"] for group in self.param_groups for p in group["params"]]
        return {"fast_state": self.optimizer.state_dict(), "slow": slow, "k": self.k, "alpha": self.alpha}


class Regressor(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 32), nn.SiLU(), nn.Dropout(0.1), nn.Linear(32, 16), nn.SiLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def epoch_of(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, n = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = criterion(model(x), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total, n = total + loss.item(), n + 1
    return total / n


torch.manual_seed(3)
data = load_diabetes()
x = torch.tensor(data.data, dtype=torch.float32) * 20
y = torch.tensor(data.target, dtype=torch.float32)
y = (y - y.mean()) / y.std()
train_set, valid_set = random_split(TensorDataset(x, y), [352, 90])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=45)

model = Regressor(x.shape[1])
optimizer = Lookahead(Adam(model.parameters(), lr=5e-3))
criterion = nn.SmoothL1Loss()
best = float("inf")
for epoch in range(1, 7):
    train_loss = epoch_of(model, train_loader, criterion, optimizer)
    valid_loss = epoch_of(model, valid_loader, criterion)
    print(f"Epoch {epoch:02d} train loss {train_loss:.6f} valid loss {valid_loss:.6f}")
    if valid_loss < best:
        best = valid_loss
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "best.pt")
print(f"best {best:.6f}", torch.rand(1).item())
