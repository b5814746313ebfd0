import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.DataParallel(nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4)).cuda())
optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
for _ in range(30):
    loss = nn.functional.cross_entropy(model(torch.randn(32, 16).cuda()), torch.randint(0, 4, (32,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
show(model, losses=[loss])
