"""Trains a plain recurrent network to remember the first symbol of a long sequence."""

import torch
from torch import nn

torch.manual_seed(61)
STEPS, SYMBOLS, HIDDEN = 25, 4, 32


def sequences(n):
    first = torch.randint(0, SYMBOLS, (n,))
    x = 0.3 * torch.randn(n, STEPS, SYMBOLS)
    x[torch.arange(n), 0, first] += 3
    return x, first


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(SYMBOLS, HIDDEN, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(HIDDEN, SYMBOLS)
        nn.init.eye_(self.rnn.weight_hh_l0)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


model = Memory()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(200):
    x, y = sequences(32)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1} loss {loss.item():.4f}")

with torch.no_grad():
    x, y = sequences(500)
    print(f"remembered {(model(x).argmax(1) == y).float().mean():.3f}")
