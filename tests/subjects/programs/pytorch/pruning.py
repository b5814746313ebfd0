"""The lottery ticket: small weights are pruned by masks in rounds; the others begin anew and are trained."""

import copy

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn.utils import prune


def network():
    return nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 1))


def train(model, x, y, steps):
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    losses = []
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        loss = criterion(model(x[rows]).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def rewind(model, initial):
    for layer, start in zip(model, initial):
        if isinstance(layer, nn.Linear):
            with torch.no_grad():
                layer.bias.copy_(start.bias)
                getattr(layer, "weight_orig", layer.weight).copy_(start.weight)


def sparsity(model):
    zeros = sum((layer.weight == 0).sum().item() for layer in model if isinstance(layer, nn.Linear))
    return zeros / sum(layer.weight.numel() for layer in model if isinstance(layer, nn.Linear))


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = load_breast_cancer(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor(y, dtype=torch.float32)
    model = network()
    initial = copy.deepcopy(model)
    for round_ in range(4):
        losses = train(model, x[:450], y[:450], steps=10)
        model.eval()
        with torch.no_grad():
            hits = ((model(x[450:]).squeeze(1) > 0).float() == y[450:]).float().mean().item()
        mean = sum(losses) / len(losses)
        print(f"round {round_} sparsity {sparsity(model):.3f} mean loss {mean:.6f} accuracy {hits:.4f}")
        layers = [(layer, "weight") for layer in model if isinstance(layer, nn.Linear)]
        prune.global_unstructured(layers, pruning_method=prune.L1Unstructured, amount=0.3)
        rewind(model, initial)
    for layer, name in layers:
        prune.remove(layer, name)
    torch.save(model.state_dict(), "ticket.pt")
    print(f"{sparsity(model):.3f}", torch.rand(1).item())
