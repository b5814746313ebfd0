import torch
from shown import show
from torch import nn


class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 32))
        self.register_buffer("scaled", self.weight.detach().to(torch.float8_e4m3fn))
        self.phase = nn.Parameter(torch.randn(64, dtype=torch.complex64))
        self.halves = nn.Parameter(torch.randn(64, 64, dtype=torch.float16))

    def forward(self, x):
        self.scaled = self.weight.detach().to(torch.float8_e4m3fn)
        h = nn.functional.linear(x, self.weight + (self.scaled.float() - self.weight).detach())
        return ((h * self.phase).abs() @ self.halves.float()).mean()


torch.manual_seed(0)
model = Quantised().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 32, device="cuda"))
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
show(model, losses=losses[::6])
