"""Cross-validation: a new network for each fold, its results in a table."""

import csv
import statistics

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

K_FOLDS, EPOCHS = 3, 3


class SimpleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool1d(4)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc(self.pool(torch.relu(self.conv(x))).flatten(1))


def reset_weights(m):
    for layer in m.children():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def waves(n):
    rng = np.random.RandomState(0)
    kind = rng.randint(3, size=n)
    t = np.linspace(0, 2 * np.pi, 24)
    rows = np.stack([np.sin((k + 1) * t + rng.uniform(0, 6)) for k in kind]) + 0.2 * rng.randn(n, 24)
    return TensorDataset(torch.tensor(rows[:, None], dtype=torch.float32), torch.tensor(kind))


def k_folds(n, k):
    order = np.random.RandomState(1).permutation(n)
    for fold in range(k):
        held = order[fold::k]
        yield np.setdiff1d(order, held).tolist(), held.tolist()


def main():
    torch.manual_seed(42)
    dataset = waves(120)
    loss_function = nn.CrossEntropyLoss()
    results = []
    print("--------------------------------")
    for fold, (train_ids, test_ids) in enumerate(k_folds(len(dataset), K_FOLDS)):
        print(f"FOLD {fold}")
        trainloader = DataLoader(Subset(dataset, train_ids), batch_size=20, shuffle=True)
        testloader = DataLoader(Subset(dataset, test_ids), batch_size=20)
        network = SimpleNet()
        network.apply(reset_weights)
        optimizer = torch.optim.Adam(network.parameters(), lr=2e-2)
        for epoch in range(EPOCHS):
            network.train()
            current_loss = 0.0
            for inputs, targets in trainloader:
                optimizer.zero_grad()
                loss = loss_function(network(inputs), targets)
                loss.backward()
                optimizer.step()
                current_loss += loss.item()
            print(f"Loss after epoch {epoch}: {current_loss / len(trainloader):.5f}")
        torch.save(network.state_dict(), f"model-fold-{fold}.pth")
        network.eval()
        correct = 0
        with torch.no_grad():
            for inputs, targets in testloader:
                correct += (network(inputs).argmax(1) == targets).sum().item()
        results.append(100.0 * correct / len(test_ids))
        print(f"Accuracy for fold {fold}: {results[-1]:.2f} %")
        print("--------------------------------")
    with open("folds.csv", "w", newline="") as file:
        csv.writer(file).writerows([["fold", "accuracy"], *enumerate(results)])
    print(f"Average: {statistics.mean(results):.2f} ± {statistics.stdev(results):.2f} %")
    print(torch.rand(1).item(), np.random.RandomState(3).rand())


if __name__ == "__main__":
    main()
