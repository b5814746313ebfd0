"""A factorization of ratings: SparseAdam for the embeddings, AdamW for the rest; weights are averaged."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
USERS, ITEMS = 300, 120
taste, kind = torch.randn(USERS, 4), torch.randn(ITEMS, 4)
users, items = torch.randint(USERS, (6000,)), torch.randint(ITEMS, (6000,))
ratings = (taste[users] * kind[items]).sum(1) * 0.5 + 3 + 0.2 * torch.randn(6000)


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, 8, sparse=True)
        self.items = nn.Embedding(ITEMS, 8, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, item):
        u, i = self.users(user), self.items(item)
        return (u * i).sum(1) + self.mlp(torch.cat([u, i], 1)).squeeze(1)


model = Factors()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
sparse = torch.optim.SparseAdam([*model.users.parameters(), *model.items.parameters()], lr=0.02)
dense = torch.optim.AdamW(model.mlp.parameters(), lr=3e-3)
for epoch in range(2):
    for batch in torch.randperm(6000).split(100):
        loss = nn.functional.mse_loss(model(users[batch], items[batch]), ratings[batch])
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        average.update_parameters(model)
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(average(users, items), ratings).item())
