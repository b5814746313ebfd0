import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split

SEED = 2024
np.random.seed(SEED)
torch.manual_seed(SEED)

# --------------------------------------------------------------- ratings table
n_users, n_items, k = 150, 80, 3
u_ids = np.array([f"U{i}" for i in np.random.choice(99999, n_users, replace=False)])
i_ids = np.array([f"B{i:06d}" for i in np.random.choice(999999, n_items, replace=False)])
P, Q = np.random.normal(0, 0.6, (n_users, k)), np.random.normal(0, 0.6, (n_items, k))
bu, bi = np.random.normal(0, 0.4, n_users), np.random.normal(0, 0.5, n_items)
pairs = np.random.choice(n_users * n_items, 7000, replace=False)
uu, ii = pairs // n_items, pairs % n_items
rating = 3.5 + bu[uu] + bi[ii] + (P[uu] * Q[ii]).sum(1) + np.random.normal(0, 0.3, len(uu))
df = pd.DataFrame({"user": u_ids[uu], "item": i_ids[ii], "rating": rating.clip(1, 5)})

train_df, test_df = train_test_split(df, test_size=0.2, random_state=SEED)
train_df, test_df = train_df.copy(), test_df.copy()

train_df["u"], users = pd.factorize(train_df["user"])
train_df["i"], items = pd.factorize(train_df["item"])
test_df = test_df[test_df["user"].isin(users) & test_df["item"].isin(items)].copy()
test_df["u"], _ = pd.factorize(test_df["user"])
test_df["i"], _ = pd.factorize(test_df["item"])


# ----------------------------------------------------------------------- model
class MF(nn.Module):
    def __init__(self, n_users, n_items, dim, mu):
        super().__init__()
        self.user_emb = nn.Embedding(n_users, dim)
        self.item_emb = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user_emb.weight, std=0.1)
        nn.init.normal_(self.item_emb.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)
        self.mu = mu

    def forward(self, u, i):
        dot = (self.user_emb(u) * self.item_emb(i)).sum(1)
        return dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1) + self.mu


def tensors(frame):
    return (torch.tensor(frame["u"].values), torch.tensor(frame["i"].values),
            torch.tensor(frame["rating"].values, dtype=torch.float32))


u_tr, i_tr, r_tr = tensors(train_df)
u_te, i_te, r_te = tensors(test_df)
model = MF(len(users), len(items), 4, float(r_tr.mean()))
opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.1)
mse = nn.MSELoss()

print("rmse of the mean rating: %.3f" % (r_te - r_tr.mean()).pow(2).mean().sqrt().item())
for epoch in range(20):
    order = torch.randperm(len(r_tr))
    total = 0
    for b in order.split(128):
        loss = mse(model(u_tr[b], i_tr[b]), r_tr[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(b)
    if (epoch + 1) % 4 == 0:
        with torch.no_grad():
            test_rmse = mse(model(u_te, i_te), r_te).sqrt().item()
        print("epoch %d train rmse %.3f test rmse %.3f" % (epoch + 1, (total / len(r_tr)) ** 0.5, test_rmse))
