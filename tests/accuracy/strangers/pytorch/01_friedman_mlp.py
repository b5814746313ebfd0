import argparse
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=25)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
np.random.seed(args.seed)

X, y = make_friedman1(n_samples=3000, n_features=8, noise=0.7, random_state=args.seed)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=args.seed)

x_scaler = StandardScaler().fit(X_train)
y_mean, y_std = y_train.mean(), y_train.std()

X_train = torch.tensor(x_scaler.transform(X_train), dtype=torch.float32)
X_val = torch.tensor(x_scaler.transform(X_val), dtype=torch.float32)
t_train = torch.tensor((y_train - y_mean) / y_std, dtype=torch.float32)

model = nn.Sequential(
    nn.Linear(X_train.shape[1], args.hidden),
    nn.ReLU(),
    nn.Linear(args.hidden, args.hidden),
    nn.ReLU(),
    nn.Linear(args.hidden, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.MSELoss()

loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(X_train, t_train),
    batch_size=args.batch_size,
    shuffle=True,
    drop_last=True,
)


def evaluate():
    model.eval()
    with torch.no_grad():
        pred = model(X_val).numpy().ravel() * y_std + y_mean
    model.train()
    return r2_score(y_val, pred), float(np.sqrt(np.mean((pred - y_val) ** 2)))


for epoch in range(1, args.epochs + 1):
    running = 0.0
    for xb, yb in loader:
        pred = model(xb)
        loss = criterion(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 5 == 0 or epoch == 1:
        r2, rmse = evaluate()
        print(f"epoch {epoch:3d}  train mse {running / len(loader):.4f}  val r2 {r2:.3f}  val rmse {rmse:.3f}")

r2, rmse = evaluate()
print(f"final val r2 {r2:.3f} rmse {rmse:.3f}")
