"""A TabNet for the wine data: steps of sparse attention over features, ghost batches, and an entropy that is added."""

import copy

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from torch import nn


def sparsemax(x):
    ordered, _ = torch.sort(x, descending=True, dim=-1)
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    cumulated = ordered.cumsum(-1) - 1
    support = (k * ordered > cumulated).sum(-1, keepdim=True)
    tau = cumulated.gather(-1, support - 1) / support
    return torch.clamp(x - tau, min=0)


class GBN(nn.Module):
    def __init__(self, input_dim, virtual_batch_size=32, momentum=0.05):
        super().__init__()
        self.virtual_batch_size = virtual_batch_size
        self.bn = nn.BatchNorm1d(input_dim, momentum=momentum)

    def forward(self, x):
        chunks = x.chunk(int(np.ceil(x.shape[0] / self.virtual_batch_size)), 0)
        return torch.cat([self.bn(part) for part in chunks], dim=0)


class GLULayer(nn.Module):
    def __init__(self, i, o, fc=None):
        super().__init__()
        self.fc = fc if fc is not None else nn.Linear(i, 2 * o, bias=False)
        self.bn, self.output_dim = GBN(2 * o), o

    def forward(self, x):
        x = self.bn(self.fc(x))
        return x[:, : self.output_dim] * torch.sigmoid(x[:, self.output_dim :])


class FeatTransformer(nn.Module):
    def __init__(self, i, o, shared):
        super().__init__()
        self.shared = GLULayer(i, o, fc=shared)
        self.specific = GLULayer(o, o)

    def forward(self, x):
        x = self.shared(x)
        return (x + self.specific(x)) * 0.5**0.5


class TabNet(nn.Module):
    def __init__(self, input_dim, output_dim, n_d=6, n_a=6, n_steps=3, gamma=1.3):
        super().__init__()
        self.n_d, self.gamma = n_d, gamma
        self.initial_bn = nn.BatchNorm1d(input_dim, momentum=0.01)
        shared = nn.Linear(input_dim, 2 * (n_d + n_a), bias=False)
        self.initial_splitter = FeatTransformer(input_dim, n_d + n_a, shared)
        self.feat_transformers = nn.ModuleList(FeatTransformer(input_dim, n_d + n_a, shared) for _ in range(n_steps))
        self.att_transformers = nn.ModuleList(
            nn.Sequential(nn.Linear(n_a, input_dim, bias=False), GBN(input_dim)) for _ in range(n_steps)
        )
        self.final_mapping = nn.Linear(n_d, output_dim, bias=False)

    def forward(self, x):
        x = self.initial_bn(x)
        prior, M_loss, res = torch.ones_like(x), 0, 0
        att = self.initial_splitter(x)[:, self.n_d :]
        for attend, transform in zip(self.att_transformers, self.feat_transformers):
            M = sparsemax(attend(att) * prior)
            M_loss = M_loss + torch.mean(torch.sum(M * torch.log(M + 1e-15), dim=1))
            prior = (self.gamma - M) * prior
            out = transform(M * x)
            res = res + torch.relu(out[:, : self.n_d])
            att = out[:, self.n_d :]
        return self.final_mapping(res), M_loss / len(self.feat_transformers)


class TabNetClassifier:
    def __init__(self, max_epochs=5, patience=3, batch_size=64, lambda_sparse=1e-3, lr=2e-2):
        self.max_epochs, self.patience, self.batch_size = max_epochs, patience, batch_size
        self.lambda_sparse, self.lr = lambda_sparse, lr

    def fit(self, X, y, eval_set):
        self.network = TabNet(X.shape[1], len(np.unique(y)))
        optimizer = torch.optim.Adam(self.network.parameters(), lr=self.lr)
        loss_fn = nn.CrossEntropyLoss()
        X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        best, best_weights = -1.0, None
        for epoch in range(self.max_epochs):
            self.network.train()
            total = 0.0
            batches = torch.randperm(len(X)).split(self.batch_size)
            for rows in batches:
                for param in self.network.parameters():
                    param.grad = None
                output, M_loss = self.network(X[rows])
                loss = loss_fn(output, y[rows])
                loss = loss - self.lambda_sparse * M_loss
                loss.backward()
                nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                optimizer.step()
                total += loss.item()
            score = accuracy_score(eval_set[1], self.predict(eval_set[0]))
            print(f"epoch {epoch:<3}| loss: {total / len(batches):.6f} | valid_accuracy: {score:.4f} |")
            if score > best:
                best, best_weights = score, copy.deepcopy(self.network.state_dict())
        self.network.load_state_dict(best_weights)

    def predict(self, X):
        self.network.eval()
        with torch.no_grad():
            return self.network(torch.tensor(X, dtype=torch.float32))[0].argmax(1).numpy()


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=50, stratify=y, random_state=0)
    clf = TabNetClassifier()
    clf.fit(X_train, y_train, eval_set=(X_test, y_test))
    print(f"FINAL TEST SCORE {accuracy_score(y_test, clf.predict(X_test)):.4f}", torch.rand(1).item())
    torch.save(clf.network.state_dict(), "tabnet.pt")
