"""Language models of rows that are padded."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

PAD, END = 0, 1
TOKENS, LENGTH, SIZE, WIDTH = 11, 12, 6, 8


class Net(nn.Module):
    """A recurrent one."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.layer = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.head(self.layer(self.embedding(x))[0])


def rows(end):
    """Rows of different lengths, each with this token behind its last one, padded but for the last row."""
    x = torch.randint(2, TOKENS, (SIZE, LENGTH))
    # What stands before the end differs from row to row.
    x[:2, 3:6] = torch.tensor([[5], [6]])
    lengths = [4, 5, *torch.randint(3, LENGTH - 3, (SIZE - 3,)).tolist(), LENGTH - 1]
    for row, length in zip(x, lengths, strict=True):
        row[length] = end
        row[length + 1 :] = PAD
    return x


def loss_of(logits, y, **told):
    return functional.cross_entropy(logits.reshape(-1, TOKENS), y.reshape(-1), **told)


def training_of(step, end=END, count=4):
    """A training; ``step`` gives the loss of a model and rows."""

    def training(capture):
        net = Net()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            step(net, rows(end)).backward()
            optimizer.step()

    return training
