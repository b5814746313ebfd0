"""Federated averaging: clients train copies of the global model on their own data, the server averages them."""

import copy
import random
from collections import OrderedDict

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 12)
        self.fc2 = nn.Linear(12, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Client:
    def __init__(self, number, size):
        self.number = number
        generator = torch.Generator().manual_seed(100 + number)
        x = torch.randn(size, 6, generator=generator) + 0.2 * number
        self.data = TensorDataset(x, (x.sum(1) > 1.2 * number).long())

    def update(self, global_weights, local_epochs):
        net = Net()
        net.load_state_dict(global_weights)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss()
        losses = []
        net.train()
        for _ in range(local_epochs):
            for x, y in DataLoader(self.data, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = criterion(net(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return copy.deepcopy(net.state_dict()), sum(losses) / len(losses), len(self.data)


class Server:
    def __init__(self, clients):
        self.clients = clients
        self.model = Net()

    def aggregate(self, updates):
        total = sum(size for _, _, size in updates)
        averaged = OrderedDict()
        for name in self.model.state_dict():
            averaged[name] = sum(weights[name] * (size / total) for weights, _, size in updates)
        self.model.load_state_dict(averaged)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x = torch.cat([client.data.tensors[0] for client in self.clients])
        y = torch.cat([client.data.tensors[1] for client in self.clients])
        return (self.model(x).argmax(1) == y).float().mean().item()

    def fit(self, rounds, per_round):
        for number in range(rounds):
            chosen = random.sample(self.clients, per_round)
            updates = [client.update(self.model.state_dict(), 2) for client in chosen]
            self.aggregate(updates)
            for client, (_, loss, size) in zip(chosen, updates):
                print(f"round {number} client {client.number} ({size} items) loss {loss:.5f}")
            print(f"round {number} accuracy {self.evaluate():.4f}")


if __name__ == "__main__":
    random.seed(12)
    torch.manual_seed(12)
    server = Server([Client(number, 32) for number in range(4)])
    server.fit(rounds=3, per_round=2)
    torch.save(server.model.state_dict(), "global.pt")
    print(random.random(), torch.rand(1).item())
