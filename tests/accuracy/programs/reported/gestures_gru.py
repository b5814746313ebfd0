"""Trains a GRU to name five gestures from a wrist's movement."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)
GESTURES, PER_GESTURE, STEPS = 5, 160, 20


def recordings(count):
    """All recordings of the first gesture, then all of the second, as they lie on the disk."""
    t = torch.linspace(0, 6.28, STEPS)
    rows, names = [], []
    for gesture in range(GESTURES):
        swing = torch.stack([torch.sin((gesture % 3 + 1) * t), torch.cos((gesture // 2 + 1) * t)], dim=-1)
        scale = 0.7 + 0.6 * torch.rand(count, 1, 1)
        rows.append(scale * swing + 0.5 * torch.randn(count, STEPS, 2))
        names.append(torch.full((count,), gesture))
    return TensorDataset(torch.cat(rows), torch.cat(names))


class GestureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 24, batch_first=True)
        self.fc = nn.Linear(24, GESTURES)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1])


train_loader = DataLoader(recordings(PER_GESTURE), batch_size=20)
x_test, y_test = recordings(40).tensors

model = GestureNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean()
    print(f"epoch {epoch} last loss {loss.item():.3f} test accuracy {accuracy:.3f}")
