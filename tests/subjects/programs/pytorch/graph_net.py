"""A graph convolutional network on a graph of two communities: all nodes in one batch, few of them labelled."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


def normalized(adjacency):
    adjacency = adjacency + np.eye(len(adjacency))
    inverse = 1 / np.sqrt(adjacency.sum(1))
    return torch.tensor(inverse[:, None] * adjacency * inverse[None], dtype=torch.float32).to_sparse()


def load_graph(n=60):
    rng = np.random.default_rng(5)
    community = np.repeat([0, 1, 2], n // 3)
    probability = np.where(community[:, None] == community[None], 0.3, 0.03)
    upper = np.triu(rng.random((n, n)) < probability, 1)
    features = rng.normal(size=(n, 8)).astype(np.float32)
    features[np.arange(n), community] += 1.0
    order = rng.permutation(n)
    split = {"train": order[:15], "val": order[15:30], "test": order[30:]}
    adjacency = normalized((upper | upper.T).astype(float))
    return adjacency, torch.from_numpy(features), torch.from_numpy(community), split


class GraphConvolution(Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.empty(in_features, out_features))
        self.bias = Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / self.weight.size(1) ** 0.5
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.spmm(adj, torch.mm(input, self.weight)) + self.bias

    def __repr__(self):
        return f"{type(self).__name__} ({self.weight.size(0)} -> {self.weight.size(1)})"


class GCN(Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


np.random.seed(72)
torch.manual_seed(72)
adj, features, labels, idx = load_graph()
model = GCN(nfeat=8, nhid=16, nclass=3, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
print(model)


def accuracy(output, rows):
    return (output[rows].argmax(1) == labels[rows]).double().mean()


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx["train"]], labels[idx["train"]])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    loss_val = F.nll_loss(output[idx["val"]], labels[idx["val"]])
    print(
        f"Epoch: {epoch + 1:04d}",
        f"loss_train: {loss_train.item():.4f}",
        f"loss_val: {loss_val.item():.4f}",
        f"acc_val: {accuracy(output, idx['val']).item():.4f}",
    )


def test():
    model.eval()
    output = model(features, adj)
    loss_test = F.nll_loss(output[idx["test"]], labels[idx["test"]])
    print("Test set results:", f"loss= {loss_test.item():.4f}", f"accuracy= {accuracy(output, idx['test']).item():.4f}")


t_total = time.time()
for epoch in range(20):
    train(epoch)
print("Optimization Finished!")
assert time.time() >= t_total
test()
torch.save(model.state_dict(), "gcn.pkl")
print(torch.rand(1).item())
