import torch
from shown import show
from torch import nn

torch.manual_seed(0)
first = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64)).cuda()
second = nn.Sequential(nn.ReLU(), nn.Linear(64, 8)).cuda()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
x = torch.randn(16, 32, device="cuda")
h = torch.randn(16, 64, device="cuda", requires_grad=True)
first = torch.cuda.make_graphed_callables(first, (x,))
second = torch.cuda.make_graphed_callables(second, (h,))
losses = []
for _ in range(40):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(second(first(torch.randn(16, 32, device="cuda"))), torch.randn(16, 8, device="cuda"))
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
show(first, second, losses=losses[::8])
