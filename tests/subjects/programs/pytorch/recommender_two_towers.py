"""A recommender of two towers with sparse embeddings, in-batch negatives, and an optimizer for sparse rows only."""

import argparse
import sqlite3

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, count, dim, features):
        super().__init__()
        self.ids = nn.Embedding(count, dim, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(dim + features, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, ids, features):
        return F.normalize(self.mlp(torch.cat([self.ids(ids), features], -1)), dim=-1)


class UserTower(Tower):
    pass


class ItemTower(Tower):
    pass


class Interactions:
    def __init__(self, users=40, items=30, seed=0):
        rng = np.random.default_rng(seed)
        taste, kind = rng.integers(3, size=users), rng.integers(3, size=items)
        self.user_features = torch.tensor(np.eye(3)[taste] + 0.1 * rng.normal(size=(users, 3)), dtype=torch.float32)
        self.item_features = torch.tensor(np.eye(3)[kind] + 0.1 * rng.normal(size=(items, 3)), dtype=torch.float32)
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table seen (user integer, item integer)")
        for _ in range(300):
            user = int(rng.integers(users))
            item = int(rng.choice(np.flatnonzero(kind == taste[user])))
            self.db.execute("insert into seen values (?, ?)", (user, item))

    def batches(self, size):
        cursor = self.db.execute("select user, item from seen order by rowid")
        while rows := cursor.fetchmany(size):
            users, items = torch.tensor(rows).T
            yield users, items


def recall_at(k, users, items, data):
    with torch.no_grad():
        u = users(torch.arange(40), data.user_features)
        i = items(torch.arange(30), data.item_features)
    top = (u @ i.T).topk(k, dim=1).indices
    pairs = data.db.execute("select distinct user, item from seen").fetchall()
    return sum(item in top[user] for user, item in pairs) / len(pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.2)
    opt = parser.parse_args()
    torch.manual_seed(3407)
    data = Interactions()
    users, items = UserTower(40, opt.dim, 3), ItemTower(30, opt.dim, 3)
    sparse = torch.optim.SparseAdam([users.ids.weight, items.ids.weight], lr=0.02)
    dense = torch.optim.Adam([*users.mlp.parameters(), *items.mlp.parameters()], lr=0.01)
    for epoch in range(opt.epochs):
        losses = []
        for user, item in data.batches(50):
            scores = users(user, data.user_features[user]) @ items(item, data.item_features[item]).T
            loss = F.cross_entropy(scores / opt.temperature, torch.arange(len(user)))
            for optimizer in (sparse, dense):
                optimizer.zero_grad()
            loss.backward()
            for optimizer in (sparse, dense):
                optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: softmax loss {np.mean(losses):.5f} recall@5 {recall_at(5, users, items, data):.4f}")
    torch.save({"users": users.state_dict(), "items": items.state_dict()}, "towers.pt")
    print(torch.rand(1).item(), np.random.default_rng(1).random())
