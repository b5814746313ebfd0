# Matrix factorization for movie ratings (explicit feedback, 1..5 stars)
import argparse

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--dim", type=int, default=32)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--seed", type=int, default=11)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
torch.manual_seed(args.seed)

N_USERS, N_ITEMS, N_RATINGS = 500, 300, 25000


def make_ratings():
    taste = rng.normal(0, 1, (N_USERS, 4))
    genre = rng.normal(0, 1, (N_ITEMS, 4))
    u_bias = rng.normal(0, 0.4, N_USERS)
    i_bias = rng.normal(0, 0.5, N_ITEMS)
    pairs = rng.choice(N_USERS * N_ITEMS, N_RATINGS, replace=False)
    u, i = pairs // N_ITEMS, pairs % N_ITEMS
    score = 3.4 + u_bias[u] + i_bias[i] + 0.35 * (taste[u] * genre[i]).sum(1)
    score += rng.normal(0, 0.4, N_RATINGS)
    return u, i, np.clip(np.round(score), 1, 5).astype("float32")


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, dim, mean):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.register_buffer("mean", torch.tensor(float(mean)))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(-1)
        return self.mean + self.user_bias(u).squeeze(-1) + self.item_bias(i).squeeze(-1) + dot


u, i, r = make_ratings()
cut = int(0.8 * N_RATINGS)
U, I, R = torch.as_tensor(u), torch.as_tensor(i), torch.as_tensor(r)
tr, te = slice(0, cut), slice(cut, None)

model = MatrixFactorization(N_USERS, N_ITEMS, args.dim, R[tr].mean())
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
mse = nn.MSELoss()

base = (R[te] - R[tr].mean()).pow(2).mean().sqrt().item()
print(f"predict-the-mean RMSE: {base:.4f}")

for epoch in range(args.epochs):
    model.train()
    order = torch.randperm(cut)
    total = 0.0
    for start in range(0, cut, args.batch):
        idx = order[start:start + args.batch]
        loss = mse(model(U[idx], I[idx]), R[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)

    model.eval()
    with torch.no_grad():
        rmse = mse(model(U[te], I[te]).clamp(1, 5), R[te]).sqrt().item()
    print(f"[{epoch + 1:02d}/{args.epochs}] train RMSE {(total / cut) ** 0.5:.4f} | test RMSE {rmse:.4f}")
