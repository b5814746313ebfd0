import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_friedman2
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 6
EPOCHS = 12
BATCH = 24


def get_data():
    X, y = make_friedman2(n_samples=1000, noise=200, random_state=SEED)
    extra = np.random.default_rng(SEED).normal(size=(1000, 8))
    return train_test_split(np.hstack([X, extra]), y, test_size=0.5, random_state=SEED)


def build_model(n_in):
    return nn.Sequential(
        nn.Linear(n_in, 48), nn.ReLU(),
        nn.Linear(48, 48), nn.ReLU(),
        nn.Linear(48, 1),
    )


def fit(model, x, y):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.05)
    criterion = nn.MSELoss()
    model.train()
    for epoch in range(EPOCHS):
        losses = []
        for idx in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 4 == 3:
            print(f"    epoch {epoch + 1:2d} train mse {np.mean(losses):.4f}")


@torch.no_grad()
def mse(model, x, y):
    model.eval()
    return (model(x) - y).pow(2).mean().item()


X, X_hold, y, y_hold = get_data()
sx = StandardScaler()
sy = StandardScaler()

torch.manual_seed(SEED)
model = build_model(X.shape[1])
initial_state = model.state_dict()

cv_scores, hold_scores = [], []
for fold, (tr, va) in enumerate(KFold(5, shuffle=True, random_state=SEED).split(X), 1):
    print(f"fold {fold}")
    sx.fit(X[tr])
    sy.fit(y[tr, None])
    to_x = lambda a: torch.tensor(sx.transform(a), dtype=torch.float32)
    to_y = lambda a: torch.tensor(sy.transform(a[:, None]), dtype=torch.float32)

    model.load_state_dict(initial_state)
    fit(model, to_x(X[tr]), to_y(y[tr]))
    cv_scores.append(mse(model, to_x(X[va]), to_y(y[va])))
    hold_scores.append(mse(model, to_x(X_hold), to_y(y_hold)))
    print(f"    validation mse {cv_scores[-1]:.4f}")

print(f"cross-validated mse {np.mean(cv_scores):.4f} +- {np.std(cv_scores):.4f}")
print(f"mse on the hold-out set {np.mean(hold_scores):.4f}")
