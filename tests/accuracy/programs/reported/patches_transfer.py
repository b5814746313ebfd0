"""Loads a saved backbone and trains a new head on it."""

import io

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(52)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(40, 64)
        self.fc2 = nn.Linear(64, 12)

    def forward(self, x):
        return torch.relu(self.fc2(torch.relu(self.fc1(x))))


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


centres = torch.randn(16, 4) * 2
mixing = torch.randn(4, 40)


def patches(n):
    group = torch.randint(0, 16, (n,))
    hidden = centres[group] + 0.3 * torch.randn(n, 4)
    return torch.tanh(hidden @ mixing / 2) + 1.2 * torch.randn(n, 40), group


def train(model, params, steps, label):
    optimizer = torch.optim.Adam(params, lr=3e-3)
    for _ in range(steps):
        x, group = patches(64)
        loss = F.cross_entropy(model(x), label(group))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


# The source task: all sixteen groups. What a training wrapped for several devices saves looks like this.
source = nn.DataParallel(Classifier(16))
print(f"source loss {train(source.module, source.parameters(), 250, lambda g: g):.3f}")
saved = io.BytesIO()
torch.save(source.state_dict(), saved)
saved.seek(0)

# The target task: pairs of groups. The head is new, so its weights are not looked for in the file.
state = {name: value for name, value in torch.load(saved).items() if "head" not in name}
model = Classifier(8)
model.load_state_dict(state, strict=False)
for p in model.backbone.parameters():
    p.requires_grad = False
print(f"target loss {train(model, model.head.parameters(), 200, lambda g: g // 2):.3f}")
with torch.no_grad():
    x, group = patches(1000)
    print(f"target accuracy {(model(x).argmax(1) == group // 2).float().mean():.3f}")
