"""Regression on the diabetes data; the epoch with the best validation error is kept."""
import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(17)

X, y = load_diabetes(return_X_y=True)
X_tr, X_tmp, y_tr, y_tmp = train_test_split(X, y, test_size=0.5, random_state=17)
X_va, X_te, y_va, y_te = train_test_split(X_tmp, y_tmp, test_size=0.5, random_state=17)

sx = StandardScaler().fit(X_tr)
y_mean, y_std = y_tr.mean(), y_tr.std()


def prepare(features, target):
    f = torch.tensor(sx.transform(features), dtype=torch.float32)
    t = torch.tensor((target - y_mean) / y_std, dtype=torch.float32).unsqueeze(1)
    return f, t


X_tr, y_tr = prepare(X_tr, y_tr)
X_va, y_va = prepare(X_va, y_va)
X_te, y_te = prepare(X_te, y_te)

model = nn.Sequential(
    nn.Linear(X_tr.shape[1], 128),
    nn.ReLU(),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def rmse(features, target):
    model.eval()
    with torch.no_grad():
        return (criterion(model(features), target).sqrt() * y_std).item()


best_rmse = float("inf")
best_epoch = 0
best_weights = None
n_epochs = 150
batch_size = 32

for epoch in range(1, n_epochs + 1):
    model.train()
    order = torch.randperm(len(X_tr))
    epoch_loss = 0.0
    for start in range(0, len(order), batch_size):
        idx = order[start:start + batch_size]
        optimizer.zero_grad()
        loss = criterion(model(X_tr[idx]), y_tr[idx])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(idx)
    epoch_loss /= len(order)

    val = rmse(X_va, y_va)
    if val < best_rmse:
        best_rmse, best_epoch = val, epoch
        best_weights = model.state_dict()
    if epoch % 15 == 0:
        print(f"epoch {epoch:3d}  train loss {epoch_loss:.4f}  val RMSE {val:.2f}")

print(f"best epoch {best_epoch} with val RMSE {best_rmse:.2f}")
model.load_state_dict(best_weights)
print(f"test RMSE of the kept model: {rmse(X_te, y_te):.2f}")
