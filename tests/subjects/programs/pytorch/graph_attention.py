"""Node classification by graph attention over two communities, with several heads and early stopping."""

import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, dropout, alpha, concat=True):
        super().__init__()
        self.dropout, self.concat = dropout, concat
        self.W = nn.Parameter(torch.empty(in_features, out_features))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(2 * out_features, 1))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.out_features = out_features
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        e = self.leakyrelu(Wh @ self.a[: self.out_features] + (Wh @ self.a[self.out_features :]).T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        attention = F.dropout(F.softmax(attention, dim=1), self.dropout, training=self.training)
        h_prime = torch.matmul(attention, Wh)
        return F.elu(h_prime) if self.concat else h_prime


class GAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout, alpha, nheads):
        super().__init__()
        self.dropout = dropout
        self.attentions = [GraphAttentionLayer(nfeat, nhid, dropout, alpha) for _ in range(nheads)]
        for i, attention in enumerate(self.attentions):
            self.add_module(f"attention_{i}", attention)
        self.out_att = GraphAttentionLayer(nhid * nheads, nclass, dropout, alpha, concat=False)

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--patience", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--weight_decay", type=float, default=5e-4)
args = parser.parse_args()

rng = np.random.RandomState(72)
torch.manual_seed(72)
n = 90
labels = torch.from_numpy(np.arange(n) % 3)
same = (labels[:, None] == labels[None]).numpy()
edges = rng.rand(n, n) < np.where(same, 0.15, 0.01)
adj = torch.from_numpy((edges | edges.T | np.eye(n, dtype=bool)).astype(np.float32))
features = F.one_hot(labels, 3).float().repeat(1, 4) + torch.from_numpy(rng.randn(n, 12).astype(np.float32))
order = torch.from_numpy(rng.permutation(n))
idx_train, idx_val, idx_test = order[:30], order[30:60], order[60:]

model = GAT(nfeat=12, nhid=6, nclass=3, dropout=0.3, alpha=0.2, nheads=2)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean()


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    print(
        f"Epoch: {epoch + 1:04d} loss_train: {loss_train.data.item():.6f} acc_train: {accuracy(output, labels):.4f} "
        f"loss_val: {loss_val.data.item():.6f} acc_val: {accuracy(output[idx_val], labels[idx_val]):.4f}"
    )
    return loss_val.data.item()


loss_values, bad_counter, best, best_epoch = [], 0, float("inf"), 0
for epoch in range(args.epochs):
    loss_values.append(train(epoch))
    torch.save(model.state_dict(), f"{epoch}.pkl")
    if loss_values[-1] < best:
        best, best_epoch, bad_counter = loss_values[-1], epoch, 0
    else:
        bad_counter += 1
    if bad_counter == args.patience:
        break
for epoch in range(len(loss_values)):
    if epoch != best_epoch:
        os.remove(f"{epoch}.pkl")
os.replace(f"{best_epoch}.pkl", "best.pkl")
print(f"Loading {best_epoch}th epoch")
model.load_state_dict(torch.load("best.pkl"))
model.eval()
output = model(features, adj)
print(f"Test set results: loss= {F.nll_loss(output[idx_test], labels[idx_test]).item():.6f}")
print(rng.rand(), torch.rand(1).item())
