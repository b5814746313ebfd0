import torch
from shown import show
from torch import nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(1000, 32)
        self.top = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()

    def forward(self, ids):
        return self.top(self.table(ids).cuda())


torch.manual_seed(0)
model = Split()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(
        model(torch.randint(0, 1000, (64, 5)))[:, 0], torch.rand(64).cuda()
    )
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
torch.save(model.state_dict(), "split.pt")
again = Split()
again.load_state_dict(torch.load("split.pt", map_location="cuda"))
show(model, again, losses=losses[::8])
