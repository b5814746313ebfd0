# %% imports
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(1)

# %% data: few samples, many noisy columns
X, y = make_classification(n_samples=1400, n_features=60, n_informative=8, n_redundant=6,
                           n_classes=3, n_clusters_per_class=2, class_sep=1.2,
                           flip_y=0.05, random_state=4)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, train_size=500, random_state=4, stratify=y)
sc = StandardScaler().fit(X_tr)
X_tr = torch.tensor(sc.transform(X_tr), dtype=torch.float32)
X_va = torch.tensor(sc.transform(X_va), dtype=torch.float32)
y_tr, y_va = torch.tensor(y_tr), torch.tensor(y_va)

# %% model
net = nn.Sequential(
    nn.Dropout(0.2),
    nn.Linear(60, 128), nn.ReLU(), nn.Dropout(0.6),
    nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(64, 3),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
criterion = nn.CrossEntropyLoss()


# %% helpers
def validate(model):
    model.eval()
    with torch.no_grad():
        logits = model(X_va)
        return criterion(logits, y_va).item(), (logits.argmax(1) == y_va).float().mean().item()


# %% training
EPOCHS, BS = 40, 32
curve = []
net.train()
for epoch in range(EPOCHS):
    perm = torch.randperm(len(X_tr))
    epoch_loss = []
    for i in range(0, len(perm), BS):
        idx = perm[i:i + BS]
        optimizer.zero_grad()
        loss = criterion(net(X_tr[idx]), y_tr[idx])
        loss.backward()
        optimizer.step()
        epoch_loss.append(loss.item())
    vl, va = validate(net)
    curve.append(vl)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:3d} train {np.mean(epoch_loss):.4f} val {vl:.4f} acc {va:.4f}")

print(f"last val loss {curve[-1]:.4f}, best {min(curve):.4f} at epoch {int(np.argmin(curve)) + 1}")
