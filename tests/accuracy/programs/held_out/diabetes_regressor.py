"""Regress the diabetes progression score from ten baseline variables."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)


class DiabetesSet(Dataset):
    def __init__(self, x, y):
        self.x = torch.tensor(x, dtype=torch.float32)
        self.y = torch.tensor(y, dtype=torch.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def build():
    return nn.Sequential(
        nn.Linear(10, 128),
        nn.SiLU(),
        nn.Linear(128, 64),
        nn.SiLU(),
        nn.Linear(64, 1),
    )


def mse(pred, target):
    return ((pred - target) ** 2).mean()


def main():
    x, y = load_diabetes(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, random_state=2)
    mx, sx = xa.mean(0), xa.std(0)
    my, sy = ya.mean(), ya.std()
    train = DiabetesSet((xa - mx) / sx, (ya - my) / sy)
    test = DiabetesSet((xb - mx) / sx, (yb - my) / sy)
    loader = DataLoader(train, batch_size=32, shuffle=True)

    net = build()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)

    for epoch in range(1, 31):
        net.train()
        losses = []
        for xb_, yb_ in loader:
            opt.zero_grad()
            loss = mse(net(xb_), yb_)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            pred = net(test.x).numpy().ravel()
        score = r2_score(test.y.numpy(), pred)
        print(f"epoch {epoch:3d}  mse {np.mean(losses):.4f}  test R2 {score:.4f}")

    rmse = float(np.sqrt(np.mean((pred - test.y.numpy()) ** 2)) * sy)
    print(f"final rmse {rmse:.1f} (target std {yb.std():.1f})")


if __name__ == "__main__":
    main()
