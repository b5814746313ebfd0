"""Trains a network on three interleaved spirals with a step-wise falling learning rate."""

import math

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)


def spirals(n):
    arm = torch.randint(0, 3, (n,))
    r = torch.rand(n).sqrt()
    angle = 4 * r + arm * 2 * math.pi / 3 + 0.1 * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], dim=1), arm


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.scheduler = StepLR(self.optimizer, step_size=5, gamma=0.5)
        self.loss_fn = nn.CrossEntropyLoss()

    def train_step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


loader = DataLoader(TensorDataset(*spirals(1280)), batch_size=64, shuffle=True)
x_val, y_val = spirals(500)
trainer = Trainer()
for epoch in range(15):
    losses = [trainer.train_step(x, y) for x, y in loader]
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {sum(losses) / len(losses):.3f} val {trainer.evaluate(x_val, y_val):.3f}")
