"""Small models for scripts of scenes."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc1 = nn.Linear(5, width)
        self.fc2 = nn.Linear(width, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Encoder(nn.Linear):
    pass


class Decoder(nn.Linear):
    pass


def batch(size=6):
    return torch.randn(size, 5), torch.randint(0, 3, (size,))


def sgd(*models, lr=0.1):
    return torch.optim.SGD([p for model in models for p in model.parameters()], lr=lr)
