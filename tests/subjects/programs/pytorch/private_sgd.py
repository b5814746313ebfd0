"""Differentially private training: batches are Poisson samples, each sample's gradient is clipped, noise is added."""

import math

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.func import functional_call, grad_and_value, vmap


class PoissonSampler:
    """Each item is in a batch with the same probability, by itself: batches differ in size, and may be empty."""

    def __init__(self, n, rate, steps, generator):
        self.n, self.rate, self.steps, self.generator = n, rate, steps, generator

    def __iter__(self):
        for _ in range(self.steps):
            yield torch.rand(self.n, generator=self.generator).lt(self.rate).nonzero().flatten()

    def __len__(self):
        return self.steps


class Classifier(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.hidden = nn.Linear(features, 16)
        self.norm = nn.GroupNorm(4, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.hidden(x))))


class PrivateGradients:
    def __init__(self, model, criterion, max_norm, noise_multiplier, expected_batch, generator):
        self.model, self.criterion, self.generator = model, criterion, generator
        self.max_norm, self.noise_multiplier, self.expected_batch = max_norm, noise_multiplier, expected_batch
        self.per_sample = vmap(grad_and_value(self.sample_loss), in_dims=(None, 0, 0))

    def sample_loss(self, params, x, y):
        return self.criterion(functional_call(self.model, params, (x[None],)), y[None])

    def compute(self, x, y):
        params = {name: p.detach() for name, p in self.model.named_parameters()}
        if len(x):
            gradients, losses = self.per_sample(params, x, y)
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()], 1).norm(dim=1)
            factors = (self.max_norm / (norms + 1e-6)).clamp(max=1.0)
            summed = {name: torch.einsum("i,i...", factors, g) for name, g in gradients.items()}
        else:
            losses, summed = torch.zeros(0), {name: torch.zeros_like(p) for name, p in params.items()}
        for name, p in self.model.named_parameters():
            noise = torch.randn(p.shape, generator=self.generator) * self.noise_multiplier * self.max_norm
            p.grad = (summed[name] + noise) / self.expected_batch
        return losses


def epsilon(rate, noise, steps, delta=1e-4):
    """A coarse bound, by the moments of a Gaussian mechanism."""
    return min(
        steps * rate**2 * order * (order + 1) / noise**2 + math.log(1 / delta) / (order - 1) for order in range(2, 64)
    )


def main(epochs=3, steps_per_epoch=12, rate=0.006, noise=0.6):
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(12)
    x, y = load_breast_cancer(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor(y)
    x_train, y_train, x_test, y_test = x[:400], y[:400], x[400:], y[400:]
    model, criterion = Classifier(x.shape[1]), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    private = PrivateGradients(model, criterion, 1.0, noise, rate * len(x_train), generator)
    sizes = []
    for epoch in range(epochs):
        model.train()
        for rows in PoissonSampler(len(x_train), rate, steps_per_epoch, generator):
            optimizer.zero_grad()
            losses = private.compute(x_train[rows], y_train[rows])
            optimizer.step()
            sizes.append(len(rows))
            text = f"{losses.mean().item():.5f}" if len(rows) else "-"
            print(f"epoch {epoch} items {len(rows)} loss of the batch {text}")
        model.eval()
        with torch.no_grad():
            logits = model(x_test)
            held_out = criterion(logits, y_test).item()
        right = (logits.argmax(1) == y_test).float().mean().item()
        spent = epsilon(rate, noise, len(sizes))
        print(f"epoch {epoch} held out {held_out:.5f} accuracy {right:.3f} epsilon {spent:.3f}")
    print("empty batches", sizes.count(0))
    torch.save(model.state_dict(), "private.pt")
    print(torch.rand(1).item(), torch.rand(1, generator=generator).item())


if __name__ == "__main__":
    main()
