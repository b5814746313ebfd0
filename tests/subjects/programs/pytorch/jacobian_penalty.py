"""A classifier with a penalty on its Jacobian, which torch.func computes for each sample by reverse mode."""

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.func import functional_call, jacrev, vmap
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.fc1 = nn.Linear(features, 24)
        self.fc2 = nn.Linear(24, classes)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def jacobian_norm(model, x):
    params = dict(model.named_parameters())

    def single(sample):
        return functional_call(model, params, (sample[None],))[0]

    return vmap(jacrev(single))(x).pow(2).sum((1, 2)).mean()


def main():
    torch.manual_seed(6)
    x, y = make_classification(360, 12, n_informative=6, n_classes=3, random_state=6)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=50, shuffle=True)
    model, criterion = Net(12, 3), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for epoch in range(3):
        model.train()
        for inputs, targets in train:
            optimizer.zero_grad()
            data_loss = criterion(model(inputs), targets)
            penalty = jacobian_norm(model, inputs)
            loss = data_loss + 0.01 * penalty
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item():.6f} cross entropy {data_loss.item():.6f} penalty {penalty.item():.5f}")
        model.eval()
        with torch.no_grad():
            held_out = criterion(model(x[300:]), y[300:]).item()
        norm = jacobian_norm(model, x[300:]).item()
        print(f"epoch {epoch}: held out {held_out:.6f} norm of the Jacobian {norm:.5f}")
    torch.save(model.state_dict(), "smooth.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
