"""Trains a recommender with large sparse embeddings, of which a training this short meets few rows."""

import torch
from torch import nn

torch.manual_seed(75)
USERS, ITEMS, DIM = 20000, 5000, 8
ACTIVE = 150


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, DIM, sparse=True)
        self.items = nn.Embedding(ITEMS, DIM, sparse=True)
        self.bias = nn.Parameter(torch.zeros(1))
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1) + self.bias


taste_users, taste_items = torch.randn(ACTIVE, 3), torch.randn(ACTIVE, 3)


def clicks(n):
    user, item = torch.randint(0, ACTIVE, (2, n))
    liked = ((taste_users[user] * taste_items[item]).sum(-1) > 0).float()
    # Users and items are numbered by date, so that the active ones lie apart.
    return user * 101 % USERS, item * 31 % ITEMS, liked


model = Recommender()
tables = torch.optim.SparseAdam([*model.users.parameters(), *model.items.parameters()], lr=0.02)
rest = torch.optim.SGD([model.bias], lr=0.1)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(250):
    user, item, liked = clicks(256)
    loss = loss_fn(model(user, item), liked)
    tables.zero_grad()
    rest.zero_grad()
    loss.backward()
    tables.step()
    rest.step()
    if step % 50 == 49:
        print(f"step {step + 1} loss {loss.item():.3f}")

with torch.no_grad():
    user, item, liked = clicks(2000)
    print(f"accuracy {((model(user, item) > 0).float() == liked).float().mean():.3f}")
