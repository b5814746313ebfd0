import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda().to(torch.bfloat16)
optimizers = {p: torch.optim.Adam([p], 1e-3, foreach=False) for p in model.parameters()}


def hook(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
losses = []
for _ in range(30):
    loss = nn.functional.cross_entropy(
        model(torch.randn(64, 64).cuda().to(torch.bfloat16)).float(), torch.randint(0, 10, (64,)).cuda()
    )
    loss.backward()
    losses.append(loss.detach())
show(model, losses=losses[::6])
