"""Small models for scripts of scenes."""

import torch
import torch.nn.functional as F
from notes import note, note_model
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


def train_batch(model, optimizer, k, name="Net", call=None):
    """Train one batch; note weights, loss and gradients as those of step ``k``."""
    x, y = batch()
    note_model(name, k, model)
    optimizer.zero_grad()
    loss = F.cross_entropy((call or model)(x), y)
    note("Loss_output_0", k, loss)
    loss.backward()
    note_model(name, k, model, gradients=True)
    optimizer.step()
