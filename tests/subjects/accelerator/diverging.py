import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e4)
criterion = nn.CrossEntropyLoss()
for _ in range(120):
    loss = criterion(model(torch.randn(32, 16).cuda()), torch.randint(0, 4, (32,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
show(model)
