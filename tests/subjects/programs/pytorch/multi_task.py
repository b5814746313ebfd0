"""Two tasks over one trunk: what each loss counts is learned as an uncertainty, beside the network."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MultiTaskNet(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.progress, self.sex = nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, x):
        shared = self.trunk(x)
        return self.progress(shared).squeeze(1), self.sex(shared)


class UncertaintyWeighting(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(tasks))

    def forward(self, *losses):
        precisions = torch.exp(-self.log_vars)
        return sum(p * loss + s for p, loss, s in zip(precisions, losses, self.log_vars))


def batches(x, progress, sex, size, shuffle):
    return DataLoader(TensorDataset(x, progress, sex), batch_size=size, shuffle=shuffle)


def main():
    torch.manual_seed(0)
    data = load_diabetes(scaled=False)
    sex = torch.tensor(data.data[:, 1] == 2).long()
    x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    x[:, 1] = 0
    progress = torch.tensor((data.target - data.target.mean()) / data.target.std(), dtype=torch.float32)
    train = batches(x[:340], progress[:340], sex[:340], 68, True)
    valid = batches(x[340:], progress[340:], sex[340:], 51, False)
    net, weighting = MultiTaskNet(x.shape[1]), UncertaintyWeighting(2)
    regression, classification = nn.MSELoss(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(
        [{"params": net.parameters()}, {"params": weighting.parameters(), "lr": 1e-2}], lr=5e-3
    )
    for epoch in range(4):
        net.train()
        for inputs, amount, kind in train:
            optimizer.zero_grad()
            predicted, logits = net(inputs)
            first, second = regression(predicted, amount), classification(logits, kind)
            loss = weighting(first, second)
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item():.6f} progress {first.item():.6f} sex {second.item():.6f}")
        net.eval()
        with torch.no_grad():
            found = [(regression(p, a).item(), classification(q, k).item()) for i, a, k in valid for p, q in [net(i)]]
        first, second = (sum(each) / len(each) for each in zip(*found))
        print(f"epoch {epoch} held out {first:.6f} and {second:.6f}, log vars {weighting.log_vars.tolist()}")
    torch.save({"net": net.state_dict(), "weighting": weighting.state_dict()}, "multi_task.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
