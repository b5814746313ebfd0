"""A GRU that predicts the next value of noisy sine waves; gradients are clipped, the loss is of the whole sequence."""

import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0])


def waves(count):
    phase, speed = torch.rand(count, 1) * 6.28, 0.2 + 0.3 * torch.rand(count, 1)
    return (torch.sin(phase + speed * torch.arange(41)) + 0.05 * torch.randn(count, 41)).unsqueeze(2)


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.5)
criterion = nn.MSELoss()
test = waves(64)
for step in range(120):
    model.train()
    batch = waves(32)
    optimizer.zero_grad()
    loss = criterion(model(batch[:, :-1]), batch[:, 1:])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            print(step, f"{criterion(model(test[:, :-1]), test[:, 1:]).item():.4f}")
