"""Two tasks on the digits with one trunk (which digit, how much ink), gradients accumulated over four batches."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
ink = x.mean(1, keepdim=True) * 4
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target), ink), batch_size=16, shuffle=True, drop_last=True)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())
        self.digit = nn.Linear(64, 10)
        self.ink = nn.Linear(64, 1)
        self.unused = nn.Linear(64, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.digit(h), self.ink(h)


model = TwoHeads()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
cross_entropy, mse = nn.CrossEntropyLoss(), nn.MSELoss()
for epoch in range(2):
    for number, (inputs, target, amount) in enumerate(loader, 1):
        digit, predicted = model(inputs)
        loss = (cross_entropy(digit, target) + 0.5 * mse(predicted, amount)) / 4
        loss.backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * 4)
