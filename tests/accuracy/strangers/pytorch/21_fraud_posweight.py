import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, f1_score, recall_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

RANDOM_STATE = 21
torch.manual_seed(RANDOM_STATE)


def load_transactions():
    X, y = make_classification(
        n_samples=8000, n_features=16, n_informative=6, n_redundant=4,
        n_clusters_per_class=2, weights=[0.93], class_sep=1.0, flip_y=0.01,
        random_state=RANDOM_STATE,
    )
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=RANDOM_STATE)
    mu, sigma = X_train.mean(axis=0), X_train.std(axis=0)
    return (X_train - mu) / sigma, (X_test - mu) / sigma, y_train, y_test


class FraudNet(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, 32),
            nn.ReLU(),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def report(model, X, y):
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(torch.tensor(X, dtype=torch.float32))).numpy()
    hard = (p > 0.5).astype(int)
    return recall_score(y, hard), f1_score(y, hard), average_precision_score(y, p)


X_train, X_test, y_train, y_test = load_transactions()
n_pos = int(y_train.sum())
n_neg = len(y_train) - n_pos
print(f"{n_pos} frauds among {len(y_train)} transactions")

train_set = TensorDataset(torch.tensor(X_train, dtype=torch.float32),
                          torch.tensor(y_train, dtype=torch.float32))
loader = DataLoader(train_set, batch_size=128, shuffle=True)

model = FraudNet(X_train.shape[1])
pos_weight = torch.tensor(n_pos / n_neg)
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)

for epoch in range(1, 13):
    model.train()
    batch_losses = []
    for features, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
        batch_losses.append(loss.item())
    recall, f1, ap = report(model, X_test, y_test)
    print(f"epoch {epoch:2d} loss {np.mean(batch_losses):.4f} recall {recall:.3f} f1 {f1:.3f} ap {ap:.3f}")
