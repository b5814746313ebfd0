"""Breast-cancer classifier; keep the weights of the best validation epoch."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(7)
np.random.seed(7)


def prepare():
    x, y = load_breast_cancer(return_X_y=True)
    x_fit, x_test, y_fit, y_test = train_test_split(x, y, test_size=0.3, random_state=1, stratify=y)
    x_tr, x_val, y_tr, y_val = train_test_split(x_fit, y_fit, test_size=0.5, random_state=1, stratify=y_fit)
    sc = StandardScaler().fit(x_tr)
    out = []
    for a, b in ((x_tr, y_tr), (x_val, y_val), (x_test, y_test)):
        out.append((torch.tensor(sc.transform(a), dtype=torch.float32), torch.tensor(b, dtype=torch.float32)))
    return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(30, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def evaluate(model, x, y, loss_fn):
    model.eval()
    with torch.no_grad():
        z = model(x)
        return loss_fn(z, y).item(), ((z > 0) == (y > 0.5)).float().mean().item()


def main():
    (x_tr, y_tr), (x_val, y_val), (x_te, y_te) = prepare()
    model = Net()
    loss_fn = nn.BCEWithLogitsLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)

    best_loss, best_epoch, best_state = float("inf"), -1, None
    for epoch in range(30):
        model.train()
        perm = torch.randperm(len(x_tr))
        for idx in perm.split(20):
            opt.zero_grad()
            loss = loss_fn(model(x_tr[idx]), y_tr[idx])
            loss.backward()
            opt.step()
        val_loss, val_acc = evaluate(model, x_val, y_val, loss_fn)
        if val_loss < best_loss:
            best_loss, best_epoch = val_loss, epoch
            best_state = model.state_dict()
        print(f"epoch {epoch:2d} train {loss.item():.5f} val {val_loss:.4f} acc {val_acc:.3f}")

    model.load_state_dict(best_state)
    test_loss, test_acc = evaluate(model, x_te, y_te, loss_fn)
    print(f"best epoch {best_epoch} (val {best_loss:.4f}) -> test loss {test_loss:.4f} acc {test_acc:.3f}")


if __name__ == "__main__":
    main()
