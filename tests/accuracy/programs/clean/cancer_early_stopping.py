"""Breast cancer: a net with one output, BCE with weights for the classes, early stopping by the validation loss."""

import copy
import sys

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x, y = load_breast_cancer(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.2, random_state=seed, stratify=y)
scaler = StandardScaler().fit(x_train)
x_train, x_val = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x_train, x_val))
y_train, y_val = (torch.tensor(part, dtype=torch.float32).unsqueeze(1) for part in (y_train, y_val))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 24)
        self.drop = nn.Dropout(0.3)
        self.hidden2 = nn.Linear(24, 12)
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        x = self.drop(torch.relu(self.hidden(x)))
        return self.out(torch.tanh(self.hidden2(x)))


net = Net()
loss_fn = nn.BCEWithLogitsLoss(pos_weight=(y_train == 0).sum() / (y_train == 1).sum())
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
best, best_state, waited = float("inf"), None, 0
for epoch in range(25):
    net.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(net(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    net.eval()
    with torch.no_grad():
        val_loss = loss_fn(net(x_val), y_val).item()
    if val_loss < best - 1e-4:
        best, best_state, waited = val_loss, copy.deepcopy(net.state_dict()), 0
    else:
        waited += 1
        if waited == 4:
            break
net.load_state_dict(best_state)
print(f"stopped after epoch {epoch}, best validation loss {best:.4f}")
