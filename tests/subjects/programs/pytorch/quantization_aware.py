"""Quantization-aware training by hand: weights and activations are rounded, gradients pass through."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class FakeQuantize(nn.Module):
    def __init__(self, bits=8, momentum=0.1):
        super().__init__()
        self.levels, self.momentum, self.observing = 2**bits - 1, momentum, True
        self.register_buffer("low", torch.tensor(0.0))
        self.register_buffer("high", torch.tensor(0.0))

    def forward(self, x):
        if self.training and self.observing:
            low, high = x.detach().min(), x.detach().max()
            self.low += self.momentum * (low.clamp(max=0) - self.low)
            self.high += self.momentum * (high.clamp(min=0) - self.high)
        scale = (self.high - self.low).clamp(min=1e-4) / self.levels
        return Round.apply((x.clamp(self.low, self.high) - self.low) / scale) * scale + self.low


class QuantLinear(nn.Linear):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.weight_fake_quant = FakeQuantize(momentum=1.0)
        self.activation_fake_quant = FakeQuantize()

    @classmethod
    def from_float(cls, layer):
        new = cls(layer.in_features, layer.out_features)
        new.load_state_dict(layer.state_dict(), strict=False)
        return new

    def forward(self, x):
        return self.activation_fake_quant(F.linear(x, self.weight_fake_quant(self.weight), self.bias))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


def prepare_qat(model):
    model = copy.deepcopy(model)
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, QuantLinear.from_float(child))
    return model


def train(model, loader, epochs, lr, title):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for module in model.modules():
            if isinstance(module, FakeQuantize):
                module.observing = epoch < epochs - 1
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"{title} loss {loss.item():.6f}")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    loader = [(x[i : i + 64], y[i : i + 64]) for i in range(0, 512, 64)]
    model = Classifier()
    train(model, loader, 2, 0.1, "float")
    quantized = prepare_qat(model)
    train(quantized, loader, 2, 0.02, "qat")
    print(f"float {accuracy(model, x[1500:], y[1500:]):.4f} quantized {accuracy(quantized, x[1500:], y[1500:]):.4f}")
    torch.save(quantized.state_dict(), "quantized.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
