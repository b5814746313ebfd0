# Regression on a Friedman-type response with an MLP
import torch
from torch import nn
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(7)

X, y = make_friedman1(n_samples=6000, n_features=10, noise=0.5, random_state=7)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=7)

x_scaler = StandardScaler().fit(X_train)
y_scaler = StandardScaler().fit(y_train.reshape(-1, 1))

X_train = torch.tensor(x_scaler.transform(X_train), dtype=torch.float32)
X_val = torch.tensor(x_scaler.transform(X_val), dtype=torch.float32)
y_train = torch.tensor(y_scaler.transform(y_train.reshape(-1, 1)).ravel(), dtype=torch.float32)
y_val = torch.tensor(y_scaler.transform(y_val.reshape(-1, 1)).ravel(), dtype=torch.float32)


class Regressor(nn.Module):
    def __init__(self, n_in, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x)


model = Regressor(X_train.shape[1])
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
batch_size = 64
n_epochs = 40

for epoch in range(1, n_epochs + 1):
    model.train()
    perm = torch.randperm(len(X_train))
    total = 0.0
    for i in range(0, len(perm), batch_size):
        idx = perm[i:i + batch_size]
        xb, yb = X_train[idx], y_train[idx]
        pred = model(xb)
        loss = ((pred - yb) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)

    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            p = model(X_val).flatten()
        mse = (p - y_val).pow(2).mean().item()
        print(f"[{epoch:3d}] train mse {total / len(X_train):.4f} | val mse {mse:.4f}")

model.eval()
with torch.no_grad():
    pred = model(X_val).flatten().numpy()
print("validation R2: %.4f" % r2_score(y_val.numpy(), pred))
