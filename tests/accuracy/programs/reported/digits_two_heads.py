"""Trains one network with two heads: the digit's class and how much ink it has."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(6)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.digit = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.ink = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.trunk(x)
        return self.digit(h), self.ink(h).squeeze(-1)


data = load_digits()
x = torch.tensor(data.data, dtype=torch.float32) / 16
labels = torch.tensor(data.target)
ink = x.sum(1)
ink = (ink - ink[:1500].mean()) / ink[:1500].std()

model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
class_loss, ink_loss = nn.CrossEntropyLoss(), nn.MSELoss()

for epoch in range(10):
    sums = {"digit": 0.0, "ink": 0.0}
    for idx in torch.randperm(1500).split(64):
        digit_out, ink_out = model(x[idx])
        digit_term = class_loss(digit_out, labels[idx])
        ink_term = ink_loss(ink_out, ink[idx]).item()
        loss = digit_term + 0.5 * ink_term
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums["digit"] += digit_term.item() / 24
        sums["ink"] += ink_term / 24
    print(f"epoch {epoch} digit {sums['digit']:.3f} ink {sums['ink']:.3f}")

model.eval()
with torch.no_grad():
    digit_out, ink_out = model(x[1500:])
print(f"accuracy {(digit_out.argmax(1) == labels[1500:]).float().mean():.3f}")
print(f"ink error {ink_loss(ink_out, ink[1500:]):.3f}")
