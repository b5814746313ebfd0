import torch
from shown import show
from torch import nn

torch.use_deterministic_algorithms(True)
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(100, 32), nn.Flatten(), nn.Linear(8 * 32, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.Adagrad(model.parameters(), 0.05)
losses = []
for _i in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randint(0, 100, (32, 8)).cuda()), torch.randint(0, 10, (32,)).cuda())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show(model, losses=losses[::8])
