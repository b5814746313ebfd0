"""Contrastive learning on the digits: two noisy, shifted views of each image, NT-Xent loss."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images = torch.tensor(load_digits().images / 16, dtype=torch.float32).unsqueeze(1)
encoder = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten()
)
projector = nn.Sequential(nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.SGD([*encoder.parameters(), *projector.parameters()], lr=0.1, momentum=0.9)


def view(x):
    return torch.roll(x, tuple(torch.randint(-1, 2, (2,)).tolist()), (2, 3)) + 0.1 * torch.randn_like(x)


for step in range(100):
    batch = images[torch.randint(len(images), (48,))]
    z = F.normalize(projector(encoder(torch.cat([view(batch), view(batch)]))), dim=1)
    similarity = z @ z.T / 0.2
    similarity.fill_diagonal_(float("-inf"))
    targets = torch.arange(96).roll(48)
    loss = F.cross_entropy(similarity, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, f"{loss.item():.4f}")
