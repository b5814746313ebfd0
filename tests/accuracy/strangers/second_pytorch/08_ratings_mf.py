"""Matrix factorisation for explicit ratings (1 to 5 stars)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 11
np.random.seed(SEED)
torch.manual_seed(SEED)

n_users, n_items, n_ratings, true_rank = 600, 400, 50_000, 4

pu = np.random.normal(0, 0.6, (n_users, true_rank))
qi = np.random.normal(0, 0.6, (n_items, true_rank))
bu = np.random.normal(0, 0.4, n_users)
bi = np.random.normal(0, 0.4, n_items)
pairs = np.random.choice(n_users * n_items, size=n_ratings, replace=False)
users, items = pairs // n_items, pairs % n_items
stars = 3.3 + bu[users] + bi[items] + (pu[users] * qi[items]).sum(1)
stars = np.clip(stars + np.random.normal(0, 0.4, n_ratings), 1, 5).astype(np.float32)

users, items, stars = torch.tensor(users), torch.tensor(items), torch.tensor(stars)
cut = int(0.85 * n_ratings)
train_ds = TensorDataset(users[:cut], items[:cut], stars[:cut])
test = (users[cut:], items[cut:], stars[cut:])
loader = DataLoader(train_ds, batch_size=512, shuffle=True)


class MF(nn.Module):
    def __init__(self, n_users, n_items, dim, mean):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        self.register_buffer("mean", torch.tensor(float(mean)))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(dim=1)
        return self.mean + dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1)


def rmse(model, u, i, r):
    model.eval()
    with torch.no_grad():
        return (model(u, i) - r).pow(2).mean().sqrt().item()


model = MF(n_users, n_items, dim=8, mean=stars[:cut].mean())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
mse = nn.MSELoss()

baseline = (stars[cut:] - stars[:cut].mean()).pow(2).mean().sqrt().item()
print(f"{cut} training ratings, constant predictor RMSE {baseline:.4f}")
for epoch in range(1, 21):
    model.train()
    total = 0.0
    for u, i, r in loader:
        optimizer.zero_grad()
        loss = mse(model(u, i), r)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(r)
    if epoch % 2 == 0:
        print(f"epoch {epoch:2d}  train rmse {(total / cut) ** 0.5:.4f}  test rmse {rmse(model, *test):.4f}")
print(f"final test RMSE {rmse(model, *test):.4f}")
